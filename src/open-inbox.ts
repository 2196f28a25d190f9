// Opens an inbox: a plain Redis list becomes a way in. `RPUSH thumbnail_queue '{"job_id": "…", "input_key": "…"}'` from any
// language is a job then.
import { invalid } from './domain/errors.js'
import { LIMITS } from './domain/limits.js'
import { checkName } from './domain/names.js'
import type { Redrive } from './redrive.js'
import type { AnyJobDefinition } from './runtime/definition.js'
import { type InboxJob, inbox } from './runtime/inbox.js'
import { namedDefinition } from './runtime/named-definition.js'
import { RedisList } from './transport/transports/redis-list.js'
import { checkRedisOptions, type RedisOptions } from './transport/transports/redis-options.js'

export interface InboxOptions extends Pick<RedisOptions, 'url' | 'tls' | 'prefix' | 'timeoutMs' | 'claimAfterMs'> {
  /** The Redis list that others push to, as it is called there. */
  readonly list: string
  /** What an entry becomes: a job of this definition, or of this name. */
  readonly job: AnyJobDefinition | string
  /** The queue of a job that is given by its name, where its workers do not say which. */
  readonly queue?: string
  /**
   * What is in an entry. Without it the entry is the payload, and its `job_id` the unique key. Throw to refuse an entry: it
   * becomes a dead letter.
   */
  readonly map?: (entry: unknown) => InboxJob
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface Inbox {
  /** Resolves when nothing more is taken. Close it before its Redrive. */
  close(): Promise<void>
}

const DEFAULT_CLAIM_AFTER_MS = 30_000

export function openInbox(redrive: Redrive, options: InboxOptions): Inbox {
  const { list, job, queue, map = entryAsPayload(list), env = process.env } = options
  if (typeof list !== 'string' || list.length < 1 || list.length > LIMITS.keyChars) {
    throw invalid('inbox.list', list, `the name of a Redis list, 1 to ${LIMITS.keyChars} characters`)
  }
  if (typeof map !== 'function') throw invalid('inbox.map', map, 'a function')
  if (typeof job === 'string') checkName('inbox.job', job)
  else if (typeof job?.name !== 'string') throw invalid('inbox.job', job, 'a job definition or the name of a job')
  const { clock, random, announce, ...rest } = redrive.intake
  const claimAfterMs = options.claimAfterMs ?? DEFAULT_CLAIM_AFTER_MS
  const source = new RedisList({
    ...checkRedisOptions({ ...options, claimAfterMs }, env),
    list,
    maxBytes: LIMITS.payloadBytes,
    clock,
    random,
    onError: error => announce('error', () => ({ where: `inbox ${list}`, error })),
  })
  const running = inbox(
    { clock, random, announce, ...rest },
    {
      source,
      read: map,
      definition: async () => (typeof job === 'string' ? namedDefinition(rest.db, job, queue) : job),
    },
  )
  running.start()
  let closing: Promise<void> | undefined
  const close = async () => {
    source.interrupt()
    await running.stop()
    await source.close()
  }
  return {
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** One live job for each `job_id`: an entry that was pushed twice runs once. */
const entryAsPayload =
  (list: string) =>
  (entry: unknown): InboxJob => {
    const id = typeof entry === 'object' && entry !== null && 'job_id' in entry ? entry.job_id : undefined
    const key = typeof id === 'string' || typeof id === 'number' ? `${list}:${id}` : undefined
    return { payload: entry, ...(key !== undefined && { options: { uniqueKey: key } }) }
  }
