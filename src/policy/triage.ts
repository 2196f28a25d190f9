// What the triage rules say of a dead letter: the first that matches has it. A rule that did for it all that it may does
// not match any more, so the next one gets its turn, and no letter goes round for ever. A rule is data, and bounded.
import { invalid } from '../domain/errors.js'
import { isKind, KINDS } from '../domain/failure.js'
import { LIMITS } from '../domain/limits.js'
import type {
  ReadyRule,
  TriageAction,
  TriageLetter,
  TriageMatch,
  TriageRuleDraft,
  TriageVerdict,
} from '../domain/triage.js'

export function judge(rules: readonly ReadyRule[], letter: TriageLetter, now: number): TriageVerdict {
  let lookAt: number | undefined
  for (const rule of rules) {
    if ((letter.triaged[rule.id] ?? 0) >= rule.maxPerLetter || !fits(rule, letter)) continue
    const oldEnough = letter.diedAt + (rule.match.olderThanMs ?? 0)
    if (now < oldEnough) {
      lookAt = Math.min(lookAt ?? oldEnough, oldEnough)
      continue
    }
    const due = letter.diedAt + (rule.action.type === 'retry' ? rule.action.afterMs : 0)
    // An earlier rule may become old enough while this one waits.
    if (now < due) return { type: 'wait', rule, until: Math.min(due, lookAt ?? due) }
    return { type: 'act', rule }
  }
  return { type: 'leave', lookAt }
}

/** Everything but the age. */
function fits({ match, fingerprints }: ReadyRule, letter: TriageLetter): boolean {
  const { kind, queue, name, service, text } = match
  return (
    (kind === undefined || kind === letter.kind) &&
    (queue === undefined || queue === letter.queue) &&
    (name === undefined || name === letter.name) &&
    (service === undefined || service === letter.service) &&
    (match.group === undefined || (fingerprints?.has(letter.fingerprint) ?? false)) &&
    (text === undefined || contains(letter.message, text) || contains(letter.name, text))
  )
}

const contains = (text: string, part: string) => text.toLowerCase().includes(part.toLowerCase())

const MOST_PER_RUN = 10_000
const MOST_PER_LETTER = 20
const LAST_POSITION = 1_000_000
const ACTIONS = ['retry', 'discard', 'assign', 'prioritise', 'escalate'] as const

/** A rule with its defaults, checked. */
export function checkTriageRule(draft: TriageRuleDraft): Required<TriageRuleDraft> {
  const { name, match, action, enabled = true, position = 100, maxPerRun = 1_000, ...more } = draft
  const { maxPerLetter = action?.type === 'retry' ? 3 : 1, ...unknown } = more
  refuseOthers('A part of a triage rule', unknown, PARTS)
  text('name', name, LIMITS.nameChars)
  if (typeof enabled !== 'boolean') throw invalid('enabled', enabled, 'true or false')
  whole('position', position, 0, LAST_POSITION)
  whole('maxPerRun', maxPerRun, 1, MOST_PER_RUN)
  whole('maxPerLetter', maxPerLetter, 1, MOST_PER_LETTER)
  return {
    name,
    match: checkMatch(match),
    action: checkAction(action),
    enabled,
    position,
    maxPerRun,
    maxPerLetter,
  }
}

const PARTS = ['name', 'match', 'action', 'enabled', 'position', 'maxPerRun', 'maxPerLetter']

function checkMatch(match: TriageMatch): TriageMatch {
  if (typeof match !== 'object' || match === null) throw invalid('match', match, 'what the rule is for')
  const { kind, olderThanMs, group, text: words, queue, name, service, ...unknown } = match
  const texts = { group, text: words, queue, name, service }
  refuseOthers('A part of match', unknown, [...Object.keys(texts), 'kind', 'olderThanMs'])
  if (kind !== undefined && !isKind(kind)) throw invalid('match.kind', kind, `one of ${KINDS.join(', ')}`)
  if (olderThanMs !== undefined) whole('match.olderThanMs', olderThanMs, 0, LIMITS.delayMs)
  for (const [what, value] of Object.entries(texts)) {
    if (value !== undefined) text(`match.${what}`, value, LIMITS.keyChars)
  }
  const given = Object.entries({ kind, olderThanMs, ...texts }).filter(([, value]) => value !== undefined)
  // A rule for everything is a slip more often than a wish (pitfall 21); an age of 0 says it in full.
  if (given.length === 0) throw invalid('match', 'empty', 'at least one condition')
  return Object.fromEntries(given)
}

function checkAction(action: TriageAction): TriageAction {
  switch (action?.type) {
    case 'retry':
      whole('action.afterMs', action.afterMs, 0, LIMITS.delayMs)
      return { type: 'retry', afterMs: action.afterMs }
    case 'discard':
      text('action.reason', action.reason, LIMITS.reasonChars)
      return { type: 'discard', reason: action.reason }
    case 'assign':
      text('action.to', action.to, LIMITS.nameChars)
      return { type: 'assign', to: action.to }
    case 'prioritise':
      whole('action.priority', action.priority, 0, 10)
      return { type: 'prioritise', priority: action.priority }
    case 'escalate':
      text('action.message', action.message, LIMITS.reasonChars)
      return { type: 'escalate', message: action.message }
    default:
      throw invalid('action.type', (action as { type?: unknown } | undefined)?.type, `one of ${ACTIONS.join(', ')}`)
  }
}

function text(what: string, value: unknown, maxChars: number): void {
  const fine = typeof value === 'string' && value.trim() !== '' && value.length <= maxChars && !value.includes('\0')
  if (!fine) throw invalid(what, value, `text of 1 to ${maxChars} characters`)
}

function whole(what: string, value: unknown, least: number, most: number): void {
  if (!(Number.isInteger(value) && (value as number) >= least && (value as number) <= most)) {
    throw invalid(what, value, `a whole number from ${least} to ${most}`)
  }
}

function refuseOthers(what: string, unknown: object, known: readonly string[]): void {
  const [misspelt] = Object.keys(unknown)
  if (misspelt !== undefined) throw invalid(what, misspelt, `one of ${known.join(', ')}`)
}
