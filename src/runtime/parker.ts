// Puts carried jobs into the ledger that this worker does not run: those that came again (whoever had them first died, or
// lost its connection), those that nobody here has a handler for, those that nobody can read, and those that were taken and
// never started. Each is acknowledged when the ledger has it. While the ledger is away they wait here, unacknowledged.
import { sleep } from '../domain/clock.js'
import type { Decision } from '../domain/decision.js'
import { ValidationError } from '../domain/errors.js'
import type { JobId, SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Outcome } from '../domain/outcome.js'
import { type Adoption, type Parked, park } from '../ledger/carried.js'
import { classify } from '../policy/classify.js'
import { decide } from '../policy/decide.js'
import type { BrokerConsumer, Delivery } from '../transport/broker.js'
import { type CarriedJob, storable } from '../transport/envelope.js'
import { announceEnd } from './announce-end.js'
import { announcedPolicies } from './announced-policies.js'
import { identityOf } from './attempt.js'
import { type Loop, loop } from './loop.js'
import { followPolicies } from './queue-sync.js'
import type { Runtime } from './runtime.js'

/** Why it is not run from here. */
export type ParkingCause =
  | { readonly type: 'again' }
  | { readonly type: 'unknown' }
  | { readonly type: 'unstarted' }
  | { readonly type: 'malformed'; readonly problem: string }

export interface ToPark {
  readonly job: CarriedJob
  readonly service?: string | undefined
  readonly consumer: BrokerConsumer
  /** Undefined: the broker gives it to others now; the ledger only has to know it before they do. */
  readonly delivery: Delivery | undefined
  readonly cause: ParkingCause
  /** The monotonic time at which it came. */
  readonly arrivedAt: number
}

export interface ParkerOptions {
  readonly worker: string
  readonly session: () => SessionId | undefined
  /** It is running here, or has succeeded here: whoever has it must first have had its say. */
  readonly standing: (id: JobId) => 'running' | 'succeeded' | undefined
  readonly onError: (error: unknown) => void
}

const BATCH = 200
/** A worker whose connection broke has so long to tell the ledger that it goes on running what comes again. */
const GRACE_MS = 2_000
const LOOK_MS = 250

export class Parker {
  readonly #runtime: Runtime
  readonly #options: ParkerOptions
  readonly #loop: Loop
  #items: ToPark[] = []
  /** Being written now. */
  #writing = 0
  #onIdle: (() => void) | undefined

  constructor(runtime: Runtime, options: ParkerOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#loop = loop({ ...runtime, step: () => this.#step(), onError: options.onError })
  }

  start(): void {
    this.#loop.start()
  }

  get size(): number {
    return this.#items.length + this.#writing
  }

  add(item: ToPark): void {
    this.#items.push(item)
    if (item.cause.type !== 'again') this.#loop.nudge()
    else this.#loop.nudgeIn(GRACE_MS)
  }

  /** The connection they came on is gone: they come again. What never started is told all the same, so that it is not lost then. */
  drop(deliveries: ReadonlySet<Delivery>): void {
    this.#items = this.#items.flatMap(item => {
      if (!item.delivery || !deliveries.has(item.delivery)) return [item]
      return item.cause.type === 'unstarted' ? [{ ...item, delivery: undefined }] : []
    })
    if (this.size === 0) this.#onIdle?.()
  }

  /** Resolves when all is in the ledger, or after `limitMs`. What came again is left to others: it waits for its grace. */
  async stop(limitMs: number): Promise<void> {
    this.#items = this.#items.filter(({ cause }) => cause.type !== 'again')
    if (this.size > 0) {
      const idle = new AbortController()
      this.#onIdle = () => idle.abort()
      this.#loop.nudge()
      await sleep(this.#runtime.clock, limitMs, idle.signal)
    }
    await this.#loop.stop()
  }

  async #step(): Promise<number> {
    const session = this.#options.session()
    const batch = session === undefined ? [] : this.#due()
    if (session === undefined || batch.length === 0) return this.size === 0 ? 60_000 : LOOK_MS
    const taken = new Set(batch)
    this.#items = this.#items.filter(item => !taken.has(item))
    this.#writing = batch.length
    try {
      await this.#write(session, batch)
    } catch (error) {
      this.#items = [...batch, ...this.#items]
      throw error
    } finally {
      this.#writing = 0
    }
    if (this.size === 0) this.#onIdle?.()
    return 0
  }

  #due(): ToPark[] {
    const before = this.#runtime.clock.monotonic() - GRACE_MS
    const due: ToPark[] = []
    const acknowledged = new Set<ToPark>()
    for (const item of this.#items) {
      if (due.length === BATCH) break
      const { cause, arrivedAt, job, delivery, consumer } = item
      if (cause.type === 'again' && arrivedAt > before) continue
      const standing = cause.type === 'again' ? this.#options.standing(job.id) : undefined
      if (standing === 'running') continue
      if (standing === 'succeeded' && delivery) {
        acknowledged.add(item)
        void consumer.acknowledge([delivery]).catch(this.#options.onError)
      } else due.push(item)
    }
    this.#items = this.#items.filter(item => !acknowledged.has(item))
    return due
  }

  async #write(session: SessionId, items: readonly ToPark[]): Promise<void> {
    const { db, transport, announce } = this.#runtime
    const { worker } = this.#options
    const judged = await this.#judge(items)
    const refused = new Set(
      await park(
        db,
        session,
        judged.map(({ parked }) => parked),
      ),
    )
    for (const { item, parked, job } of judged) {
      const { delivery, consumer, cause } = item
      if (delivery) void consumer.acknowledge([delivery]).catch(this.#options.onError)
      if (refused.has(parked)) continue
      const { outcome, decision } = parked
      if (cause.type === 'again')
        announce('job.rescued', () => ({ job: identityOf(job), worker, outcome: outcome.type, decision }))
      announceEnd(announce, { job, outcome, decision, worker, durationMs: 0, afterwards: true })
      if ('delayMs' in decision) this.#runtime.onDeferred(decision.delayMs)
    }
    for (const queue of new Set(items.map(({ job }) => job.queue))) transport.wake(queue)
  }

  async #judge(items: readonly ToPark[]) {
    const { policies, clock, random } = this.#runtime
    if (items.some(({ cause }) => cause.type === 'again')) await followPolicies(this.#runtime)
    const announced = await announcedPolicies(this.#runtime)
    const at = clock.monotonic()
    return items.map(item => {
      const { payloadText, isJson } = storable(item.job.payloadText)
      const job = claimed(item.job, clock.now())
      const outcome = outcomeOf(item, isJson, job)
      const policy = policies.forAnnounced(announced(job), job)
      const decision: Decision = decide({ outcome, job, policy, now: job.claimedAt, random })
      const adoption: Adoption = {
        ...item.job,
        payloadText,
        service: item.job.service ?? item.service,
        heldForMs: Math.max(0, at - item.arrivedAt),
      }
      const parked: Parked = { job: adoption, outcome, decision }
      return { item, job, parked }
    })
  }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** As the rules that decide know a job: one that was claimed for the first time. Field by field: spreading it costs a tenth of a job. */
export function claimed(job: CarriedJob, now: number): Mutable<Omit<ClaimedJob, 'lease'>> {
  const { createdAt = now } = job
  const taken: Mutable<Omit<ClaimedJob, 'lease'>> = {
    id: job.id,
    queue: job.queue,
    name: job.name,
    priority: job.priority,
    payloadText: job.payloadText,
    attempt: 1,
    snoozes: 0,
    holds: 0,
    interruptions: 0,
    lost: 0,
    redrives: 0,
    createdAt,
    firstClaimedAt: now,
    claimedAt: now,
    waitingSince: Math.min(now, createdAt),
    suspect: false,
    carried: true,
  }
  if (job.service !== undefined) taken.service = job.service
  if (job.tenant !== undefined) taken.tenant = job.tenant
  if (job.user !== undefined) taken.user = job.user
  if (job.project !== undefined) taken.project = job.project
  if (job.maxAttempts !== undefined) taken.maxAttempts = job.maxAttempts
  if (job.trace !== undefined) taken.trace = job.trace
  return taken
}

function outcomeOf({ cause, delivery }: ToPark, isJson: boolean, job: Omit<ClaimedJob, 'lease'>): Outcome {
  const problem = cause.type === 'malformed' ? cause.problem : 'its body is not JSON'
  if (cause.type === 'malformed' || !isJson) {
    const error = new ValidationError(`The message cannot be read: ${problem}`)
    error.stack = ''
    return { type: 'failed', failure: classify(error, { job: identityOf(job) }), final: true }
  }
  if (cause.type !== 'again') return { type: 'interrupted', started: false }
  const died = Object.assign(new Error('its worker died or lost its connection to the broker during attempt 1'), {
    name: 'WorkerLost',
    stack: undefined,
  })
  const classifier = () => ({ kind: 'lost', because: `${delivery?.queue ?? job.queue} delivered it again` }) as const
  return { type: 'lost', failure: classify(died, { job: identityOf(job), classifier }) }
}
