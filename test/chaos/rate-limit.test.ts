// Three processes work on rate limited jobs, with more work than the limits let through. Counted at the handlers: no
// window of time, of any length, has more starts than its limit allows, and at least 95% of each limit is used.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'
import { FOR_ALL, PER_TENANT, ratedJobs } from './support/rated-jobs.js'
import { busiest, mostWithin, type Start } from './support/rated-starts.js'

const WORKER = fileURLToPath(new URL('./support/rated-worker.ts', import.meta.url))
const TENANTS = ['a', 'b', 'c']
const MEASURED_MS = 8_000
/** Connections are opened and code is compiled in the first moments. */
const WARM_UP_MS = 1_000

/** A machine that has no time for its processes cannot show what they use: then another stretch is measured. */
const STRETCHES = 3
const isEnough = (share: number) => share >= 0.95
const LIMITED = [
  ...TENANTS.map(tenant => ({ line: `call ${tenant}`, of: PER_TENANT })),
  { line: 'send -', of: FOR_ALL },
] as const

test('three processes together stay under every limit, and use it', async () => {
  const { url = '' } = await freshDatabase('server', { migrated: false })
  await enqueueEnough(url)
  const starts: Start[] = []
  const children = Array.from({ length: 3 }, () => startWorker(url, starts))
  onTestFinished(() => Promise.all(children.map(child => child.end())).then(() => {}))
  const from = Math.max(...(await Promise.all(children.map(child => child.readyAt)))) + WARM_UP_MS

  const timesOf = (line: string) =>
    starts
      .filter(start => start.line === line)
      .map(({ at }) => at)
      .sort((a, b) => a - b)
  let used: number[] = []
  for (let stretch = 0; stretch < STRETCHES && !(stretch > 0 && used.every(isEnough)); stretch += 1) {
    const begin = from + stretch * MEASURED_MS
    await until('it was measured', () => starts.some(({ at }) => at > begin + MEASURED_MS + 100), 60_000)
    used = LIMITED.map(({ line, of }) => {
      const measured = timesOf(line).filter(at => at >= begin && at < begin + MEASURED_MS)
      return measured.length / ((of.limit * MEASURED_MS) / of.intervalMs)
    })
  }

  for (const [index, { line, of }] of LIMITED.entries()) {
    const times = timesOf(line)
    const [share = 0, most, over] = [used[index], mostWithin(times, of.intervalMs), busiest(times, of)]
    console.log(`${line}: ${(share * 100).toFixed(1)}% used, ${most} in its busiest interval, ${over.toFixed(2)} over`)
    expect.soft(isEnough(share), `${line}: enough of its limit was used`).toBe(true)
    expect.soft(most, `${line}: starts in its busiest interval`).toBeLessThanOrEqual(of.limit + of.burst - 1)
    // A burst has room for starts that are a little late; without one the interval is what counts.
    if (of.burst > 1) expect.soft(over, `${line}: starts over what a window may have`).toBeLessThanOrEqual(0)
  }
  const holds = starts.map(start => start.holds)
  const mean = holds.reduce((total, held) => total + held, 0) / holds.length
  console.log(`held ${mean.toFixed(2)} times on average, at most ${Math.max(...holds)}`)
  expect(mean).toBeLessThan(2)
})

/** More than all stretches can use. */
async function enqueueEnough(url: string): Promise<void> {
  const redrive = await openRedrive({ database: url, env: {}, logger: silent })
  const { call, send } = ratedJobs()
  const seconds = (STRETCHES * MEASURED_MS) / 1_000 + 5
  const many = (count: number, options = {}) => Array.from({ length: count }, () => ({ payload: {}, options }))
  for (const tenant of TENANTS) await redrive.enqueueMany(call, many(PER_TENANT.limit * seconds, { tenant }))
  await redrive.enqueueMany(send, many((FOR_ALL.limit / FOR_ALL.intervalMs) * 1_000 * seconds))
  await redrive.close()
}

function startWorker(url: string, starts: Start[]) {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', WORKER, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let isReady: (at: number) => void = () => {}
  const readyAt = new Promise<number>(resolve => {
    isReady = resolve
  })
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
    const [name, tenant, at, holds] = line.split(' ')
    if (name === 'ready') isReady(performance.timeOrigin + performance.now())
    else starts.push({ line: `${name} ${tenant}`, at: Number(at), holds: Number(holds) })
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  return {
    readyAt,
    end: () => {
      child.kill('SIGKILL')
      return ended
    },
  }
}
