// Jobs that Redis carries, as a user sees them: enqueued, run, failed and retried, buried, paused; and jobs that somebody
// added to a stream who has never heard of Redrive.
import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { bury, defineJob, type JobId, openRedrive, type Redrive, TransientError } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/redis.js'
import { freshDatabase } from '../support/databases.js'
import { redisScene } from '../support/redis.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'

const PATIENCE_MS = 60_000

async function stage(options: Partial<RedisOptions> = {}) {
  const scene = await redisScene()
  const { url: database = '' } = await freshDatabase('server', { migrated: false })
  const { url, prefix } = scene
  const open = async () => {
    const redrive = await openRedrive({
      database,
      env: {},
      logger: silent,
      pollMs: 100,
      transports: { redis: redis({ url, prefix, ...options }) },
      queues: { mail: { transport: 'redis' } },
    })
    onTestFinished(() => redrive.close({ graceMs: 0 }))
    return redrive
  }
  return { ...scene, open, redrive: await open() }
}

const ended = (redrive: Redrive, event: 'job.completed' | 'job.dead') => {
  const ids = new Set<JobId>()
  redrive.on(event, ({ job }) => void ids.add(job.id))
  return ids
}

test('successes leave nothing behind, failures are in the ledger', async () => {
  const { redrive, raw, prefix } = await stage()
  const seen: string[] = []
  const send = defineJob<{ to: string }>({
    name: 'send',
    queue: 'mail',
    retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 10 }, minMs: 10 },
    handler: async ({ to }, { attempt }) => {
      seen.push(`${to} ${attempt}`)
      if (to === 'flaky' && attempt === 1) throw new TransientError('not the first time')
      return to === 'never' ? bury('no such address') : undefined
    },
  })
  const completed = ended(redrive, 'job.completed')
  const dead = ended(redrive, 'job.dead')
  redrive.work([send])
  const payloads = ['ada', 'flaky', 'never', 'bob'].map(to => ({ payload: { to } }))
  const [ada, flaky, never] = await redrive.enqueueMany(send, payloads)
  await until('all have ended', () => completed.size === 3 && dead.size === 1, PATIENCE_MS)
  expect(seen.toSorted()).toEqual(['ada 1', 'bob 1', 'flaky 1', 'flaky 2', 'never 1'])
  // What simply succeeded never was in the ledger.
  expect(await redrive.operator.jobs.get(ada?.id as JobId)).toBeUndefined()
  expect(await redrive.operator.jobs.get(flaky?.id as JobId)).toMatchObject({ state: 'completed', attempt: 2 })
  expect(await redrive.operator.jobs.get(never?.id as JobId)).toMatchObject({ state: 'dead' })
  await until('Redis has forgotten them', async () => (await raw.xlen(`${prefix}mail:5`)) === 0, PATIENCE_MS)
})

test('an entry from the command line is a job; one that nobody can read is a dead letter', async context => {
  const { redrive, url, prefix } = await stage()
  const { hostname, port } = new URL(url)
  const add = (...words: string[]) =>
    spawnSync('redis-cli', ['-h', hostname, '-p', port || '6379', 'XADD', `${prefix}mail:7`, '*', ...words])
  if (add('redrive-name', 'send', 'body', '{"to": "ada"}').error) {
    return context.skip('needs redis-cli: it is not installed here')
  }
  add('body', '{"to": "nobody knows what"}')
  add('redrive-name', 'send', 'body', '{"to": ')
  add('redrive-name', 'send', 'redrive-id', 'no uuid', 'body', '{"to": "eve"}')
  const seen: unknown[] = []
  redrive.work([
    defineJob({
      name: 'send',
      queue: 'mail',
      handler: async (payload, { job }) => void seen.push([payload, job.priority]),
    }),
  ])
  const letters = await until(
    'the unreadable are dead letters',
    async () => {
      const { items } = await redrive.operator.deadLetters.list({ queue: 'mail' })
      return items.length === 3 && items
    },
    PATIENCE_MS,
  )
  expect(letters.map(({ kind }) => kind)).toEqual(['validation', 'validation', 'validation'])
  expect(letters.map(({ payload }) => payload)).toContainEqual({ raw: '{"to": ' })
  await until('the readable one ran', () => seen.length === 1, PATIENCE_MS)
  expect(seen).toEqual([[{ to: 'ada' }, 7]])
})

test('pause, depth and resume are as for any queue', async () => {
  const { redrive, open } = await stage()
  const send = defineJob({ name: 'send', queue: 'mail', handler: async () => {} })
  await redrive.operator.queues.pause('mail')
  const worker = await open()
  const completed = ended(worker, 'job.completed')
  await worker.work([send]).ready
  await redrive.enqueueMany(
    send,
    Array.from({ length: 5 }, () => ({ payload: {} })),
  )
  await until(
    'the desk shows five waiting',
    async () => {
      const all = await redrive.operator.queues.statistics()
      return all.find(({ queue }) => queue === 'mail')?.waiting === 5
    },
    PATIENCE_MS,
  )
  expect(completed.size).toBe(0)
  await redrive.operator.queues.resume('mail')
  await until('they ran', () => completed.size === 5, PATIENCE_MS)
})

test('a worker that comes up while a queue is paused starts nothing of it', async () => {
  const { redrive, open } = await stage()
  const send = defineJob({ name: 'send', queue: 'mail', priority: 9, handler: async () => {} })
  const print = defineJob({ name: 'print', queue: 'paper', transport: 'redis', priority: 1, handler: async () => {} })
  const many = Array.from({ length: 200 }, () => ({ payload: {} }))
  await redrive.operator.queues.pause('mail')
  await redrive.enqueueMany(send, many)
  await redrive.enqueueMany(print, many)
  const worker = await open()
  const completed: string[] = []
  worker.on('job.completed', ({ job }) => void completed.push(job.queue))
  await worker.work([send, print]).ready
  // They stand behind the others in line: whoever gets to them has passed those over.
  await until('the other queue is done', () => completed.filter(queue => queue === 'paper').length === 200, PATIENCE_MS)
  expect(completed).not.toContain('mail')
  const waiting = async () => {
    const all = await redrive.operator.queues.statistics()
    return all.find(({ queue }) => queue === 'mail')?.waiting
  }
  await until('the desk shows that all wait', async () => (await waiting()) === 200, PATIENCE_MS)
  expect(completed).not.toContain('mail')
  await redrive.operator.queues.resume('mail')
  await until('they ran', () => completed.filter(queue => queue === 'mail').length === 200, PATIENCE_MS)
})
