// A process of its own that works on chaos jobs, started by child.ts: node --import tsx worker.ts <config as JSON>.
import { existsSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { cancel, type HandlerContext, openRedrive, PermanentError, TransientError } from '../../../src/index.js'
import { carriedBy, defineJobs } from './jobs.js'
import type { ChildConfig, Command, News } from './protocol.js'

const config = JSON.parse(process.argv[2] as string) as ChildConfig

/** Written when it returns: a process that dies right after has told it all the same. */
function tell(news: News): void {
  let rest = Buffer.from(`${JSON.stringify({ ...news, pid: process.pid, at: Date.now() })}\n`)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

const gates = new Map<string, () => void>()
const opened = new Set<string>()

const waitAt = (id: string, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    if (opened.has(id) || opened.has('all')) return resolve()
    gates.set(id, resolve)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })

/** Tells when a handler starts and how it ends. */
const told =
  <Payload>(perform: (payload: Payload, context: HandlerContext) => unknown) =>
  async (payload: Payload, context: HandlerContext) => {
    const { attempt, job } = context
    tell({ event: 'started', id: job.id, job: job.name, attempt })
    try {
      const result = await perform(payload, context)
      tell({ event: 'finished', id: job.id, attempt })
      return result
    } catch (error) {
      const code = String((error as { code?: unknown }).code ?? (error as Error).name)
      tell({ event: 'threw', id: job.id, attempt, code })
      throw error
    }
  }

const jobs = defineJobs({
  work: told(async ({ ms, end }, { signal, attempt }) => {
    if (ms > 0) await wait(ms, signal)
    if (end === 'flaky' && attempt === 1) throw new TransientError('not the first time')
    if (end === 'die') throw new PermanentError('never')
    return end === 'cancel' ? cancel('not wanted') : undefined
  }),
  gate: told((_, { job, signal }) => waitAt(job.id, signal)),
  block: told(({ until }, { attempt }) => {
    const cell = new Int32Array(new SharedArrayBuffer(4))
    while (attempt === 1 && !existsSync(until)) Atomics.wait(cell, 0, 0, 10)
  }),
  poison: told(async (_, { job, attempt, signal }) => {
    if (attempt === 1) await waitAt(job.id, signal)
    process.kill(process.pid, 'SIGKILL')
  }),
})

const redrive = await openRedrive({
  ...(config.database !== undefined && { database: config.database }),
  ...(config.folder !== undefined && { dataDir: config.folder }),
  ...(config.pollMs !== undefined && { pollMs: config.pollMs }),
  ...carriedBy(config),
  leaseMs: config.leaseMs,
  name: config.name,
  env: { LOG_LEVEL: 'silent' },
})

let settled = 0
let onSettled: (() => void) | undefined
const settledAs = (as: ToldAs) => (event: { job: { id: string }; attempt: number }) => {
  tell({ event: 'settled', id: event.job.id, attempt: event.attempt, as })
  settled += 1
  onSettled?.()
}
type ToldAs = Extract<News, { event: 'settled' }>['as']

redrive.on('job.completed', settledAs('complete'))
redrive.on('job.dead', settledAs('bury'))
redrive.on('job.cancelled', settledAs('cancel'))
redrive.on('job.retrying', settledAs('retry'))
redrive.on('job.returned', settledAs('return'))
redrive.on('job.refused', ({ job, outcome }) => tell({ event: 'refused', id: job.id, outcome }))
redrive.on('job.rescued', ({ job, worker, decision }) =>
  tell({ event: 'rescued', id: job.id, worker, as: decision.type }),
)
redrive.on('worker.lapsed', ({ reason, jobs: ids }) => tell({ event: 'lapsed', reason, ids }))
redrive.on('error', ({ where, error }) => tell({ event: 'error', where, message: String(error) }))

function work(): void {
  const worker = redrive.work(Object.values(jobs), { concurrency: config.concurrency, name: config.name })
  void worker.ready.then(() => tell({ event: 'ready' }))
}

const MOST_AHEAD = 100
const BATCH = 10

/** Enqueues for ever, never far ahead of what was worked off. */
async function enqueue(): Promise<never> {
  for (let acknowledged = 0; ; ) {
    const batch = Array.from({ length: BATCH }, (_, index) => ({ payload: { ms: index } }))
    const one = await redrive.enqueue(jobs.work, { ms: 1 })
    tell({ event: 'acknowledged', ids: [one.id] })
    const many = await redrive.enqueueMany(jobs.work, batch)
    tell({ event: 'acknowledged', ids: many.map(({ id }) => id) })
    acknowledged += many.length + 1
    while (acknowledged - settled > MOST_AHEAD) {
      await new Promise<void>(resolve => {
        onSettled = resolve
      })
    }
  }
}

function obey(command: Command): void {
  switch (command.do) {
    case 'work':
      work()
      break
    case 'open':
      for (const id of command.ids === 'all' ? ['all', ...gates.keys()] : command.ids) {
        opened.add(id)
        gates.get(id)?.()
      }
  }
}

const commands = createInterface({ input: process.stdin })
commands.on('line', line => obey(JSON.parse(line) as Command))
commands.on('close', () => process.exit()) // nobody is there any more to account for us

process.once('SIGTERM', () => {
  tell({ event: 'terminating' })
  void redrive.close(config.graceMs === undefined ? {} : { graceMs: config.graceMs }).then(() => {
    tell({ event: 'stopped' })
    process.exit()
  })
})

tell({ event: 'opened' })
if (config.working !== false) work()
if (config.enqueuing) await enqueue()
