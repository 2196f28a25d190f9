// Takes JSON that others put down somewhere (a Redis list) and enqueues it as jobs, without losing one: an entry is done
// only when its job is in the ledger. A job gets the ticket of its entry as its id, so whoever finds an entry that another
// process left can see whether that one had enqueued it (pitfall 4: nothing is removed before it is safe elsewhere).
//
// What cannot become a job is a dead letter of kind validation with the raw text, and never comes again.
import { RedriveError } from '../domain/errors.js'
import { RETRIABLE } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { NewJob } from '../domain/job.js'
import { LIMITS } from '../domain/limits.js'
import type { InProcessEnd } from '../ledger/in-process.js'
import { findJob } from '../ledger/job.js'
import { classify } from '../policy/classify.js'
import { storable } from '../transport/envelope.js'
import type { Arrival, InboxSource } from '../transport/inbox-source.js'
import { identityOf } from './attempt.js'
import type { AnyJobDefinition } from './definition.js'
import { bury } from './inbox-refusal.js'
import { type Loop, loop } from './loop.js'
import { checkPayload } from './payload.js'
import { type EnqueueOptions, newJob } from './producer.js'
import type { Runtime } from './runtime.js'

export interface InboxRuntime extends Pick<Runtime, 'db' | 'transport' | 'clock' | 'random' | 'announce'> {
  readonly record: (end: InProcessEnd) => Promise<void>
}

/** What an entry becomes. */
export interface InboxJob {
  readonly payload: unknown
  readonly options?: Omit<EnqueueOptions, 'tx'>
}

export interface InboxOptions {
  readonly source: InboxSource
  /** What entries become; asked for each batch, as it may be known only by its name. */
  readonly definition: () => Promise<AnyJobDefinition>
  /** What is in an entry; throws when it cannot become a job. */
  readonly read: (json: unknown) => InboxJob
}

const BATCH = 100

export function inbox(runtime: InboxRuntime, { source, definition, read }: InboxOptions): Loop {
  const { db, transport, clock, random, announce, record } = runtime
  let pending: readonly Arrival[] = []
  /** The last step failed: what is pending may be in the ledger. */
  let doubtful = false

  const step = async () => {
    if (pending.length === 0) {
      pending = await source.take(BATCH)
      doubtful = false
    }
    if (pending.length === 0) return 0
    const job = await definition()
    // Together; if that failed, one by one: one that cannot be enqueued must not stop the others (pitfall 20).
    const batch = doubtful ? pending.slice(0, 1) : pending
    const looking = doubtful
    doubtful = true
    await enqueue(job, batch, looking)
    await source.done(batch.map(({ ticket }) => ticket))
    pending = pending.slice(batch.length)
    return 0
  }

  const enqueue = async (job: AnyJobDefinition, batch: readonly Arrival[], looking: boolean) => {
    const jobs: NewJob[] = []
    for (const arrival of batch) {
      if ((looking || arrival.again) && (await isThere(arrival))) continue
      const became = await become(job, arrival)
      if ('refused' in became) await refuse(job, arrival, became.refused)
      else jobs.push(became)
    }
    const [only] = batch
    try {
      await publish(jobs)
    } catch (error) {
      if (batch.length > 1 || !only || RETRIABLE[classify(error).kind] || (await isThere(only))) throw error
      await refuse(job, only, error)
    }
  }

  const isThere = async ({ ticket }: Arrival) => (await findJob(db, ticket as JobId)) !== undefined

  const become = async (job: AnyJobDefinition, { ticket, text, bytes }: Arrival) => {
    try {
      if (bytes > LIMITS.payloadBytes) throw tooLarge(bytes)
      const { payload, options } = read(parsed(text))
      // What has a unique key is in the ledger, where it can be found, and not on a broker.
      const made: NewJob = { ...newJob(clock, job, payload, { uniqueKey: ticket, ...options }), id: ticket as JobId }
      if (!storable(made.payloadText).isJson)
        throw new RedriveError('PAYLOAD_INVALID', 'The entry is nested too deeply')
      await checkPayload(job, made.payloadText)
      return made
    } catch (error) {
      return { refused: error }
    }
  }

  const refuse = (job: AnyJobDefinition, { ticket, text }: Arrival, error: unknown) =>
    bury({ id: ticket as JobId, definition: job, text, error }, { announce, record, now: clock.now() })

  const publish = async (jobs: readonly NewJob[]) => {
    if (jobs.length === 0) return
    const enqueued = await transport.publish(jobs)
    for (const [index, { deduplicated }] of enqueued.entries()) {
      const job = jobs[index]
      if (job && !deduplicated) announce('job.enqueued', () => ({ job: identityOf(job) }))
    }
  }

  return loop({ clock, random, step, onError: error => announce('error', () => ({ where: 'inbox', error })) })
}

const tooLarge = (bytes: number) =>
  new RedriveError('PAYLOAD_TOO_LARGE', `The entry has ${bytes} bytes; at most ${LIMITS.payloadBytes} are allowed`)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RedriveError('PAYLOAD_INVALID', `The entry is not JSON: ${(cause as Error).message}`)
  }
}
