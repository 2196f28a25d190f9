// What a person may do about triage rules: see them, write them, try them without changing anything, run them now. Every
// change of a rule is audited; what a rule does is audited in its name.
import { invalid, RedriveError } from '../domain/errors.js'
import type { Announce } from '../domain/event.js'
import type { Json } from '../domain/json.js'
import type { TriageRule, TriageRuleDraft } from '../domain/triage.js'
import { writeAudit } from '../ledger/audit.js'
import { makeGroups } from '../ledger/group-notice.js'
import { announceTriage } from '../ledger/triage-news.js'
import {
  changeTriageRule,
  createTriageRule,
  lockTriageRule,
  MOST_RULES,
  removeTriageRule,
  triageRules,
} from '../ledger/triage-rule.js'
import { runTriage, type TriageRun, tryTriage } from '../ledger/triage-run.js'
import { checkTriageRule, judge } from '../policy/triage.js'
import { type Acting, actorOf, type Desk, notFound } from './context.js'

/** Changing a rule: `version` is the one you saw; with another one nothing is changed. */
export interface ChangingRule extends Acting {
  readonly version?: number
}

/** All but the name. */
export type TriageRuleChange = Partial<Omit<TriageRuleDraft, 'name'>>

export interface TriageRunOptions {
  /** Only says what would be done. */
  readonly dryRun?: boolean
  /** With `dryRun`: as if this rule were enabled. */
  readonly rule?: string
}

export function triage(desk: Desk & { readonly announce: Announce }) {
  const { db, announce } = desk

  return {
    /** In the order in which they are asked. */
    list: (): Promise<TriageRule[]> => triageRules(db),

    async create(draft: TriageRuleDraft, acting: Acting = {}): Promise<TriageRule> {
      const rule = checkTriageRule(draft)
      return db.transaction(async tx => {
        const made = await createTriageRule(tx, rule, actorOf(acting))
        if (!made) throw invalid('name', rule.name, `one that no rule has, and there can be ${MOST_RULES} rules`)
        await writeAudit(tx, { ...entry('create', rule.name, acting), after: asJson(rule) })
        return made
      })
    },

    /** What is not said stays as it is; `match` and `action` are said whole. */
    async update(name: string, change: TriageRuleChange, changing: ChangingRule = {}): Promise<TriageRule> {
      return db.transaction(async tx => {
        const was = await lockTriageRule(tx, name)
        if (!was) throw notFound(`triage rule ${name}`)
        checkVersion(was, changing.version)
        const rule = checkTriageRule({ ...draftOf(was), ...change, name })
        const changed = await changeTriageRule(tx, rule, actorOf(changing))
        if (!changed) throw notFound(`triage rule ${name}`)
        await writeAudit(tx, {
          ...entry('update', name, changing),
          before: asJson(draftOf(was)),
          after: asJson(rule),
        })
        return changed
      })
    },

    async remove(name: string, changing: ChangingRule = {}): Promise<void> {
      await db.transaction(async tx => {
        const was = await lockTriageRule(tx, name)
        if (!was) throw notFound(`triage rule ${name}`)
        checkVersion(was, changing.version)
        await removeTriageRule(tx, name)
        await writeAudit(tx, { ...entry('remove', name, changing), before: asJson(draftOf(was)) })
      })
    },

    /** Runs the rules now, or only says what they would do. */
    async run({ dryRun = false, rule }: TriageRunOptions = {}): Promise<TriageRun> {
      if (rule !== undefined && !dryRun) throw invalid('rule', rule, 'given with `dryRun: true` only')
      await makeGroups(db)
      if (dryRun) return tryTriage(db, judge, rule)
      return runTriage(db, { judge, onDone: done => announceTriage(announce, done), onWork: desk.wake })
    },
  }
}

export type Triage = ReturnType<typeof triage>

const draftOf = ({ name, match, action, enabled, position, maxPerRun, maxPerLetter }: TriageRule) => {
  return { name, match, action, enabled, position, maxPerRun, maxPerLetter }
}

const asJson = (rule: Required<TriageRuleDraft>): Json => {
  const { name, match, action, ...rest } = rule
  return { name, match: { ...match }, action: { ...action }, ...rest }
}

function checkVersion({ name, version: is }: TriageRule, version: number | undefined): void {
  if (version === undefined || version === is) return
  const message = `Triage rule ${name} was changed meanwhile; it is at version ${is}`
  throw new RedriveError('VERSION_CONFLICT', message, { details: { name, version: is } })
}

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'triage_rule' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})
