// The demo from its first line to its last: says what was found, produces and works jobs, shows what happens, and
// leaves cleanly.
import { sleep, systemClock } from '../domain/clock.js'
import type { Redrive } from '../index.js'
import { DEMO_JOBS } from './jobs.js'
import {
  countOf,
  inWords,
  isEmpty,
  type LedgerState,
  lastRecovery,
  liveJobs,
  openDeadLetters,
  readLedger,
} from './ledger-state.js'
import type { collectNews } from './news.js'
import type { Screen } from './screen.js'
import { produce } from './stream.js'
import { coloured, line, plain, printable, table } from './summary.js'

export interface DemoOptions {
  readonly screen: Screen
  readonly news: ReturnType<typeof collectNews>
  /** Aborts when the demo shall end. */
  readonly stop: AbortSignal
  /** Which database this is, in words. */
  readonly where: string
  /** Where psql finds the views; undefined for the embedded database, which psql cannot reach. */
  readonly schema: string | undefined
  readonly colours: boolean
}

const DRAW_EVERY_MS = 1_000
const LINE_EVERY_MS = 3_000
const GRACE_MS = 30_000
/** Throughput is taken over so many looks. */
const WINDOW = 10

export async function runDemo(redrive: Redrive, options: DemoOptions): Promise<void> {
  const { screen, news, stop } = options
  const found = await readLedger(redrive)
  for (const text of greeting(found, options)) screen.say(text)
  if (stop.aborted) return

  news.follow(redrive)
  const worker = redrive.work(DEMO_JOBS)
  let latest = found
  const load = () => ({ live: liveJobs(latest), openDeadLetters: openDeadLetters(latest) })
  const producing = produce(redrive, load, stop, error => news.add(`a job could not be enqueued: ${messageOf(error)}`))
  await show(redrive, options, state => {
    latest = state
  })

  const running = `${worker.active} running ${worker.active === 1 ? 'job' : 'jobs'}`
  screen.say(`stopping: letting ${running} finish (Ctrl-C again to stop now)`)
  await producing
  await worker.stop({ graceMs: GRACE_MS })
  for (const text of await farewell(redrive, options)) screen.say(text)
}

function greeting(found: LedgerState, { where, schema }: DemoOptions): string[] {
  const recovery = lastRecovery(found, systemClock.now())
  return [
    `Redrive on ${printable(where)}`,
    isEmpty(found) ? 'found: nothing yet' : `found: ${inWords(found)}`,
    ...(recovery === undefined ? [] : [`       ${printable(recovery)}`]),
    'now:   demo jobs, about three a second; some succeed, some heal on retry, some die',
    '       (it does not serve the HTTP API yet, so it shows this with and without --demo)',
    `try:   Ctrl-C, then npm start again; or kill -9 ${process.pid}, and see its jobs rescued`,
    schema === undefined
      ? '       your own first job: docs/guide/first-job.md'
      : `       psql: TABLE ${schema}.queue_statistics; the other views: docs/reference/sql-views.md`,
    '',
  ]
}

/** Shows what happens until it is time to stop. A ledger that does not answer is shown, not fatal. */
async function show(redrive: Redrive, options: DemoOptions, onState: (state: LedgerState) => void): Promise<void> {
  const { screen, news, stop, colours } = options
  const style = colours ? coloured : plain
  const looks: { at: number; completed: number }[] = []
  let state: LedgerState | undefined
  while (!stop.aborted) {
    let trouble: string | undefined
    try {
      state = await readLedger(redrive)
      onState(state)
      looks.push({ at: systemClock.monotonic(), completed: countOf(state, 'completed') })
      if (looks.length > WINDOW) looks.shift()
    } catch (error) {
      trouble = messageOf(error)
    }
    if (stop.aborted) return
    if (state) {
      const moment = { state, news, perSecond: rate(looks), trouble }
      if (screen.redraws) screen.draw(table(moment, screen.columns, style))
      else screen.say(line(moment, new Date(systemClock.now())))
    }
    await sleep(systemClock, screen.redraws ? DRAW_EVERY_MS : LINE_EVERY_MS, stop)
  }
}

function rate(looks: readonly { at: number; completed: number }[]): number {
  const [first, last] = [looks[0], looks.at(-1)]
  if (!first || !last || last.at <= first.at) return 0
  return Math.max(0, ((last.completed - first.completed) * 1_000) / (last.at - first.at))
}

async function farewell(redrive: Redrive, { news }: DemoOptions): Promise<string[]> {
  const { completed, retried, died } = news.counts
  const did = `this run: ${completed} completed, ${retried} failed and retried, ${died} died`
  try {
    return [did, `left:     ${inWords(await readLedger(redrive))}`]
  } catch (error) {
    return [did, `left:     the ledger does not answer: ${printable(messageOf(error))}`]
  }
}

const messageOf = (error: unknown): string => (error as Error)?.message || String(error)
