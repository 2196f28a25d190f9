// One run of the triage rules, by recovery or on demand: letters whose time has come, then those that died since the last
// look, page by page. What the rules say is not decided here (`judge`); what they do is done a page and rule at a time.
import type { JobId } from '../domain/ids.js'
import type { ReadyRule, TriageJudge, TriageLetter, TriageRule } from '../domain/triage.js'
import type { Database, Queryable } from './database.js'
import { membersOf } from './group-members.js'
import { actOn } from './triage-act.js'
import {
  advanceTriage,
  ledgerTime,
  lettersAfter,
  lettersDue,
  lookAgain,
  type TriagePlace,
  type TriageProgress,
  triageProgress,
} from './triage-letter.js'
import { triageRules } from './triage-rule.js'

const PAGE = 1_000
/** More than this wait for the next run. */
const MOST_LOOKED_AT = 100_000
const SAMPLES = 5

/** What one rule did in a run, or would do. */
export interface TriageOutcome {
  readonly rule: string
  readonly action: TriageRule['action']['type']
  readonly acted: number
  /** Of a retry: left open, because another live job holds their unique key. */
  readonly conflicts: number
  /** Theirs, but their time has not come. */
  readonly waiting: number
  /** Some of those, for people. */
  readonly sample: readonly Pick<TriageLetter, 'id' | 'queue' | 'name' | 'message'>[]
}

export interface TriageRun {
  readonly dryRun: boolean
  /** Dead letters that the rules looked at. */
  readonly looked: number
  /** False: there are more to look at; the next run goes on. */
  readonly complete: boolean
  /** In the order of the rules. */
  readonly rules: readonly TriageOutcome[]
}

/** Rules did something. */
export interface TriageDone {
  readonly rule: ReadyRule
  readonly letters: readonly TriageLetter[]
}

export interface TriageOptions {
  readonly judge: TriageJudge
  readonly onDone: (done: TriageDone) => void
  readonly onWork: (queue: string) => void
  /** Called after each page. */
  readonly between?: () => Promise<void>
}

type Tally = { -readonly [Key in keyof TriageOutcome]: TriageOutcome[Key] }

const tallyOf = ({ name, action }: ReadyRule): Tally => ({
  rule: name,
  action: action.type,
  acted: 0,
  conflicts: 0,
  waiting: 0,
  sample: [],
})

const sampled = (tally: Tally, { id, queue, name, message }: TriageLetter) => {
  if (tally.sample.length < SAMPLES) tally.sample = [...tally.sample, { id, queue, name, message }]
}

/** `disabled`: the name of a rule to count as enabled. */
async function readyRules(db: Queryable, disabled?: string): Promise<ReadyRule[]> {
  const ready: ReadyRule[] = []
  for (const rule of await triageRules(db)) {
    const { group } = rule.match
    if (!rule.enabled && rule.name !== disabled) continue
    ready.push(group === undefined ? rule : { ...rule, fingerprints: new Set(await membersOf(db, group)) })
  }
  return ready
}

/** What the rules would do about the letters that are open now. Changes nothing. */
export async function tryTriage(db: Queryable, judge: TriageJudge, disabled?: string): Promise<TriageRun> {
  const rules = await readyRules(db, disabled)
  const tallies = new Map(rules.map(rule => [rule.id, tallyOf(rule)]))
  const now = await ledgerTime(db)
  let looked = 0
  let place: TriagePlace | undefined
  while (looked < MOST_LOOKED_AT) {
    const page = await lettersAfter(db, place, PAGE)
    for (const letter of page.letters) {
      const verdict = judge(rules, letter, now)
      if (verdict.type === 'leave') continue
      const tally = tallies.get(verdict.rule.id) as Tally
      sampled(tally, letter)
      if (verdict.type === 'wait') tally.waiting += 1
      // What is over the limit of one run waits for the next.
      else if (tally.acted < verdict.rule.maxPerRun) tally.acted += 1
      else tally.waiting += 1
    }
    looked += page.letters.length
    place = page.place
    if (page.letters.length < PAGE) return { dryRun: true, looked, complete: true, rules: [...tallies.values()] }
  }
  return { dryRun: true, looked, complete: false, rules: [...tallies.values()] }
}

export async function runTriage(db: Database, options: TriageOptions): Promise<TriageRun> {
  // Before the rules: whoever changes one meanwhile sets it back, and this run does not go past that.
  const progress = await triageProgress(db)
  const rules = await readyRules(db)
  const nothing = { dryRun: false, looked: 0, complete: true, rules: [] }
  if (rules.length === 0) return nothing
  const run = new Run(db, rules, await ledgerTime(db), options)
  const complete = (await run.due()) && (await run.fresh(progress))
  return { ...nothing, looked: run.looked, complete, rules: run.outcomes() }
}

class Run {
  readonly #db: Database
  readonly #rules: readonly ReadyRule[]
  readonly #now: number
  readonly #options: TriageOptions
  readonly #tallies: Map<string, Tally>
  /** A letter is looked at once a run, so one rule at most does something about it. */
  readonly #seen = new Set<JobId>()

  constructor(db: Database, rules: readonly ReadyRule[], now: number, options: TriageOptions) {
    this.#db = db
    this.#rules = rules
    this.#now = now
    this.#options = options
    this.#tallies = new Map(rules.map(rule => [rule.id, tallyOf(rule)]))
  }

  get looked(): number {
    return this.#seen.size
  }

  outcomes = (): TriageOutcome[] => [...this.#tallies.values()]

  /** Letters whose time has come. False: there are more than one run looks at. */
  async due(): Promise<boolean> {
    while (this.looked < MOST_LOOKED_AT) {
      const { letters, closed } = await lettersDue(this.#db, PAGE)
      await lookAgain(
        this.#db,
        closed.map(id => ({ id, at: null })),
      )
      const judged = await this.#page(letters)
      // What somebody else has locked is still due: not for us to turn round and round.
      if (letters.length + closed.length < PAGE || judged + closed.length === 0) return true
    }
    return false
  }

  /** Letters that died since the last look, or all if a rule has changed. */
  async fresh(progress: TriageProgress): Promise<boolean> {
    let stored: TriageProgress | undefined = progress
    const { micros, seq } = progress
    let place: TriagePlace | undefined = micros === null || seq === null ? undefined : { micros, seq }
    while (this.looked < MOST_LOOKED_AT) {
      const page = await lettersAfter(this.#db, place, PAGE)
      await this.#page(page.letters)
      if (page.place !== undefined) {
        stored = await advanceTriage(this.#db, stored, page.place)
        // A rule was changed meanwhile: the next run begins again, with it.
        if (stored === undefined) return false
        place = page.place
      }
      if (page.letters.length < PAGE) return true
    }
    return false
  }

  /** Returns how many of them were not seen before. */
  async #page(letters: readonly TriageLetter[]): Promise<number> {
    const fresh = letters.filter(({ id }) => !this.#seen.has(id))
    const acts = new Map<ReadyRule, TriageLetter[]>()
    const looks: { id: JobId; at: number | null }[] = []
    for (const letter of fresh) {
      this.#seen.add(letter.id)
      const verdict = this.#options.judge(this.#rules, letter, this.#now)
      if (verdict.type === 'leave') {
        looks.push({ id: letter.id, at: verdict.lookAt ?? null })
        continue
      }
      const tally = this.#tallies.get(verdict.rule.id) as Tally
      const chosen = acts.get(verdict.rule) ?? []
      const full = verdict.type === 'act' && tally.acted + chosen.length >= verdict.rule.maxPerRun
      if (verdict.type === 'wait' || full) {
        tally.waiting += 1
        looks.push({ id: letter.id, at: verdict.type === 'wait' ? verdict.until : this.#now + 1 })
      } else {
        chosen.push(letter)
        acts.set(verdict.rule, chosen)
      }
    }
    await lookAgain(this.#db, this.#needed(looks, letters))
    for (const [rule, chosen] of acts) await this.#act(rule, chosen)
    await this.#options.between?.()
    return fresh.length
  }

  async #act(rule: ReadyRule, chosen: readonly TriageLetter[]): Promise<void> {
    const { ids, conflicts, queues } = await actOn(this.#db, rule, chosen)
    const done = new Set(ids)
    const letters = chosen.filter(({ id }) => done.has(id))
    // Somebody else had them just then.
    const left = chosen.filter(({ id }) => !done.has(id)).map(({ id }) => ({ id, at: this.#now + 1 }))
    await lookAgain(this.#db, left)
    const tally = this.#tallies.get(rule.id) as Tally
    tally.acted += letters.length
    tally.conflicts += conflicts.length
    for (const letter of letters) sampled(tally, letter)
    for (const queue of queues) this.#options.onWork(queue)
    if (letters.length > 0) this.#options.onDone({ rule, letters })
  }

  /** A letter that has no time, and gets none, is not written. */
  #needed(looks: readonly { id: JobId; at: number | null }[], letters: readonly TriageLetter[]) {
    const timed = new Set(letters.filter(({ toLookAt }) => toLookAt).map(({ id }) => id))
    return looks.filter(({ id, at }) => at !== null || timed.has(id))
  }
}
