// A service is down for twelve seconds under load, with three processes on Postgres that call it over HTTP; all times a
// tenth of the defaults, so it stands for two minutes. Counted at the service itself, with the breaker and without.
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { openRedrive, type ServiceSettings } from '../../src/index.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'
import { OFF, outageJobs, TENTH } from './support/outage-jobs.js'

const WORKER = fileURLToPath(new URL('./support/outage-worker.ts', import.meta.url))
const PROCESSES = 3
const BATCH = 10
const EVERY_MS = 250
const HEALTHY_MS = 2_000
const OUTAGE_MS = 12_000

test('a service is down under load, with three processes', async () => {
  // Side by side: they meet the same machine, and most of the time both only wait.
  const [without, held] = await Promise.all([outage(OFF), outage(TENTH)])
  const share = held.wasted / without.wasted
  console.log('twelve seconds of outage, three processes:', JSON.stringify({ without, with: held, share }, null, 1))

  expect(share, 'of the calls that were wasted').toBeLessThan(0.05)
  expect(held.dead, 'jobs that died of the outage').toBe(0)
  expect(held.done, 'jobs done of those that came').toBe(held.came)
  // The other service has all the work that comes, and does it, in the same queue and by the same workers.
  expect(held.othersDone).toBeGreaterThanOrEqual(held.othersCame - 2 * BATCH)
  expect(held.othersDone).toBeGreaterThanOrEqual(without.othersDone * 0.95)
  // Nothing stampedes: no second after closing has more calls than the ramp allows at its end.
  const { releasePerSecond, releaseDoublingMs } = TENTH.breaker
  for (const [second, calls] of held.afterClosing.entries()) {
    const rate = releasePerSecond * 2 ** (((second + 1) * 1_000) / releaseDoublingMs)
    expect(calls, `calls in second ${second} after closing`).toBeLessThanOrEqual(rate + TAKEN_EARLY)
  }
  expect(held.drainedAfterMs).toBeLessThanOrEqual(20_000)
}, 180_000)

/** Permits of the ramp are taken a moment before they are used. */
const TAKEN_EARLY = 15

async function outage(files: ServiceSettings) {
  const { url: database = '' } = await freshDatabase('server', { migrated: false })
  const redrive = await openRedrive({ database, env: {}, logger: silent })
  const service = await serve()
  const [upload, send] = outageJobs(service.address)
  const config = JSON.stringify({ database, address: service.address, services: { files } })
  const lines: { line: string; at: number }[] = []
  const children = Array.from({ length: PROCESSES }, () => start(config, line => lines.push({ line, at: Date.now() })))
  const end = async () => {
    await Promise.all(children.map(child => child.end()))
    await redrive.close()
    await service.close()
  }
  onTestFinished(end)
  await Promise.all(children.map(child => child.ready))

  let came = 0
  const batch = Array.from({ length: BATCH }, () => ({ payload: {} }))
  const arrive = async (forMs: number) => {
    for (const until = Date.now() + forMs; Date.now() < until; ) {
      await Promise.all([redrive.enqueueMany(upload, batch), redrive.enqueueMany(send, batch)])
      came += BATCH
      await wait(EVERY_MS)
    }
  }
  await arrive(HEALTHY_MS)
  service.down(true)
  const downAt = Date.now()
  const othersBefore = service.calls.mail.length
  const cameBefore = came
  await arrive(OUTAGE_MS)
  const othersDone = service.calls.mail.length - othersBefore
  const othersCame = came - cameBefore
  const upAt = Date.now()
  service.down(false)
  const dead = () => lines.filter(({ line }) => line === 'dead upload').length
  await until('nothing is left', () => service.stored() + dead() >= came, 60_000)
  const drainedAfterMs = Date.now() - upAt
  const closedAt = lines.findLast(({ line }) => line === 'breaker files closed')?.at ?? upAt
  await end()
  return {
    wasted: service.calls.files.filter(at => at >= downAt && at < upAt).length,
    dead: dead(),
    done: service.stored(),
    came,
    othersDone,
    othersCame,
    drainedAfterMs,
    openings: lines.filter(({ line }) => line === 'breaker files open').length,
    afterClosing: Array.from({ length: 5 }, (_, second) => {
      const from = closedAt + second * 1_000
      return service.calls.files.filter(at => at >= from && at < from + 1_000).length
    }),
  }
}

/** Two services at one address: one that can be down, one that never is. */
async function serve() {
  const calls = { files: [] as number[], mail: [] as number[] }
  let isDown = false
  let stored = 0
  const server = createServer((request, response) => {
    const service = request.url === '/files' ? 'files' : 'mail'
    calls[service].push(Date.now())
    const fails = service === 'files' && isDown
    if (service === 'files' && !fails) stored += 1
    response.writeHead(fails ? 503 : 200).end(fails ? 'down' : 'ok')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    stored: () => stored,
    down: (down: boolean) => {
      isDown = down
    },
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function start(config: string, onLine: (line: string) => void) {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', WORKER, config], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const ready = new Promise<void>((resolve, reject) => {
    void ended.then(() => reject(new Error('a worker ended before it was ready')))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
      if (line === 'ready') resolve()
      else onLine(line)
    })
  })
  return {
    ready,
    end: () => {
      child.kill('SIGKILL')
      return ended
    },
  }
}
