// The demo's jobs: one for each way a job can go. Their queues begin with `demo.`, so that on a shared server this
// program neither takes nor makes jobs of anyone else.
import { sleep, systemClock } from '../domain/clock.js'
import { defineJob, exponential, fixed, type JobDefinition, ValidationError } from '../index.js'

export interface DemoPayload {
  readonly number: number
}

type DemoJob = JobDefinition<DemoPayload, DemoPayload, unknown>

const work = (number: number, signal: AbortSignal) => sleep(systemClock, 20 + (number % 7) * 15, signal)

/** Succeeds. */
const sendMail: DemoJob = defineJob({
  name: 'mail.send',
  queue: 'demo.mail',
  service: 'smtp',
  handler: async ({ number }, { signal }) => {
    await work(number, signal)
    return { messageId: `<${number}@demo>` }
  },
})

/** Fails once because the connection breaks, then heals. Names no service: half of its attempts fail, which no breaker bears. */
const syncInvoice: DemoJob = defineJob({
  name: 'invoice.sync',
  queue: 'demo.billing',
  retry: { attempts: 4, backoff: exponential({ initialMs: 1_000, factor: 3 }) },
  handler: async ({ number }, { attempt, signal }) => {
    await work(number, signal)
    if (attempt === 1) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    return { invoice: number }
  },
})

/** Is told to slow down, waits as long as it was asked to, then succeeds. */
const fetchRates: DemoJob = defineJob({
  name: 'rates.fetch',
  queue: 'demo.rates',
  service: 'bank',
  handler: async ({ number }, { attempt, signal }) => {
    await work(number, signal)
    if (attempt > 1) return { rate: 1 + (number % 10) / 100 }
    const response = { status: 429, headers: { 'retry-after': '3' } }
    throw Object.assign(new Error('Request failed with status code 429'), { response })
  },
})

/** Dies at once: no retry can mend its data. */
const renderReport: DemoJob = defineJob({
  name: 'report.render',
  queue: 'demo.reports',
  handler: ({ number }) => {
    throw new ValidationError(`report ${number} has no column "total"`)
  },
})

/** Never ends by itself: times out twice and dies. Names no service: a breaker would hold it instead. */
const makeThumbnail: DemoJob = defineJob({
  name: 'thumbnail.make',
  queue: 'demo.media',
  timeoutMs: 5_000,
  retry: { attempts: 2, backoff: fixed({ delayMs: 2_000 }) },
  handler: async (_payload, { signal }) => {
    await sleep(systemClock, 60_000, signal)
    throw signal.reason
  },
})

export const DEMO_JOBS = [sendMail, syncInvoice, fetchRates, renderReport, makeThumbnail] as const

/** These die; the stream leaves them out when enough have. */
export const DYING: ReadonlySet<DemoJob> = new Set([renderReport, makeThumbnail])

const [m, i] = [sendMail, syncInvoice]

/** What is produced, over and over, in this order: mostly mail. */
export const STREAM: readonly DemoJob[] = [
  makeThumbnail,
  m,
  i,
  m,
  renderReport,
  m,
  m,
  fetchRates,
  m,
  i,
  m,
  m,
  i,
  m,
  m,
  m,
]
