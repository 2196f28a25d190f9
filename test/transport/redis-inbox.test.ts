// A plain Redis list as a way in: what others push becomes jobs, each once, whatever dies in between; and what cannot
// become a job is a dead letter that a person can read.
import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { newId } from '../../src/domain/ids.js'
import { type DeadLetter, defineJob, type JobDefinition, type Redrive } from '../../src/index.js'
import { type InboxOptions, openInbox } from '../../src/redis.js'
import { type InboxJob, inbox } from '../../src/runtime/inbox.js'
import type { Arrival } from '../../src/transport/inbox-source.js'
import { RedisList } from '../../src/transport/transports/redis-list.js'
import { beforeFirst } from '../support/databases.js'
import { type Library, openLibrary } from '../support/library.js'
import { type RedisScene, redisScene } from '../support/redis.js'
import { until } from '../support/until.js'

const schema = z.object({
  job_id: z.string(),
  input_key: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
})
type Payload = z.infer<typeof schema>

const entry = (id: string, more = {}) => JSON.stringify({ job_id: id, input_key: `${id}.mp4`, ...more })

interface Stage extends RedisScene {
  readonly redrive: Redrive
  readonly queue: string
  readonly thumbnail: JobDefinition<Payload, Payload>
  readonly list: string
  open(options?: Partial<InboxOptions>): void
  work(handler: (payload: Payload) => Promise<unknown>): void
  jobs(): Promise<Payload[]>
  letters(many: number): Promise<readonly DeadLetter[]>
}

let library: Library
let stages = 0
beforeFirst(async () => {
  library = await openLibrary('server')
})

/** A queue and a list of its own. */
async function stage(): Promise<Stage> {
  const scene = await redisScene()
  const { redrive } = library
  stages += 1
  const queue = `thumbnails-${stages}`
  const list = `${scene.prefix}thumbnail_queue`
  const options = { name: 'thumbnail', queue, schema, concurrency: 1 }
  const thumbnail = defineJob(options)
  return {
    ...scene,
    redrive,
    queue,
    list,
    thumbnail,
    open(change = {}) {
      const { url, prefix } = scene
      const opened = openInbox(redrive, { url, prefix, list, job: thumbnail, ...change })
      onTestFinished(() => opened.close())
    },
    work(handler) {
      const worker = redrive.work([defineJob({ ...options, handler })])
      onTestFinished(async () => void (await worker.stop({ graceMs: 0 })))
    },
    async jobs() {
      const { items } = await redrive.operator.findJobs({ queue })
      const views = await Promise.all(items.map(({ id }) => redrive.operator.jobs.get(id)))
      return views.flatMap(view => (view && view.state !== 'dead' ? [view.payload as Payload] : []))
    },
    letters: many =>
      until(`${many} dead letters are there`, async () => {
        const { items } = await redrive.operator.deadLetters.list({ queue })
        return items.length === many && items
      }),
  }
}

test('what is pushed becomes a job, in order, and leaves nothing behind', async () => {
  const { work, raw, list, open, prefix } = await stage()
  await raw.rpush(list, entry('before', { params: { width: 320 } }))
  open()
  const done: Payload[] = []
  work(async payload => void done.push(payload))
  await until('the first is done', () => done.length === 1)
  await raw.rpush(list, entry('a'), entry('b'))
  await until('all are done', () => done.length === 3)
  expect(done[0]).toEqual({ job_id: 'before', input_key: 'before.mp4', params: { width: 320 } })
  expect(done.map(payload => payload.job_id)).toEqual(['before', 'a', 'b'])
  await until('nothing is left', async () => {
    const keys = await raw.keys(`${prefix}*`)
    return keys.every(key => key.endsWith(':members'))
  })
})

test('a push from the command line is processed', async context => {
  const { work, url, list, open, queue } = await stage()
  const { port, hostname } = new URL(url)
  const text = '{"job_id": "cli", "input_key": "in/video.mp4", "params": {"width": 320, "at": 1.5}}'
  const pushed = spawnSync('redis-cli', ['-h', hostname, '-p', port || '6379', 'RPUSH', list, text])
  if (pushed.error) return context.skip('needs redis-cli: it is not installed here')
  open({ job: 'thumbnail', queue })
  const seen = new Promise<Payload>(resolve => work(async payload => resolve(payload)))
  expect(await seen).toEqual(JSON.parse(text))
})

test('what cannot become a job is a dead letter with the raw text, and the line goes on', async () => {
  const { raw, list, open, jobs, letters } = await stage()
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  await raw.rpush(list, '{"job_id": "cut o', entry('good'), '{"job_id": 7}', deep, Buffer.from([0xff, 0x00, 0x7b]))
  await raw.rpush(list, `"${'x'.repeat(2_000_000)}"`, '', entry('last'))
  open()
  await until('the last is a job', async () => (await jobs()).length === 2)
  expect((await jobs()).map(payload => payload.job_id).toSorted()).toEqual(['good', 'last'])
  const dead = await letters(6)
  expect(dead.map(({ kind, name }) => [kind, name])).toEqual(Array(6).fill(['validation', 'thumbnail']))
  const payloads = dead.map(({ payload }) => payload)
  expect(payloads).toContainEqual({ raw: '{"job_id": "cut o' })
  expect(payloads).toContainEqual({ job_id: 7 })
})

test('a map says what an entry becomes, or refuses it', async () => {
  const { raw, list, open, redrive, queue, letters } = await stage()
  const map = (json: unknown): InboxJob => {
    const { file, rush } = json as { file?: string; rush?: boolean }
    if (file === undefined) throw new TypeError('an entry needs a file')
    return { payload: { job_id: file, input_key: file }, options: { priority: rush ? 9 : 1, tenant: 'acme' } }
  }
  open({ map })
  await raw.rpush(list, '{"file": "a.mp4", "rush": true}', '{"other": 1}')
  const [letter] = await letters(1)
  expect(letter).toMatchObject({
    payload: { other: 1 },
    kind: 'validation',
    reason: expect.stringContaining('needs a file'),
  })
  const jobs = await until('the other is a job', async () => {
    const { items } = await redrive.operator.findJobs({ queue, state: 'waiting' })
    return items.length > 0 && items
  })
  expect(jobs).toMatchObject([{ priority: 9, tenant: 'acme' }])
})

test('an entry that was pushed twice is one job while that lives', async () => {
  const { raw, list, open, jobs } = await stage()
  await raw.rpush(list, entry('same'), entry('same'), entry('other'), entry('same'))
  open()
  await until('the list is empty', async () => (await raw.llen(list)) === 0 && (await jobs()).length >= 2)
  await raw.rpush(list, entry('end'))
  await until('the last came', async () => (await jobs()).some(payload => payload.job_id === 'end'))
  expect(await jobs()).toHaveLength(3)
})

test('what a dead process left is taken over: unlooked at to the front of the line, the rest by its ticket, once', async () => {
  const { raw, list, prefix, open, jobs, redrive, queue } = await stage()
  const base = `${prefix}inbox:${list}`
  const [enqueued, notYet] = [newId(), newId()]
  // It had moved two entries, given two others their tickets, and enqueued one of them; then it was killed.
  await raw.zadd(`${base}:members`, 1, 'dead')
  await raw.rpush(`${base}:dead:arrived`, entry('moved-1'), entry('moved-2'))
  await raw.hset(`${base}:dead:tickets`, enqueued, entry('enqueued'), notYet, entry('not-yet'))
  await raw.rpush(list, entry('next'))
  const made = {
    id: enqueued as never,
    queue,
    name: 'thumbnail',
    priority: 5,
    payloadText: entry('enqueued'),
  }
  await redrive.intake.transport.publish([made])
  // A living one keeps what it has.
  const [seconds] = await raw.time()
  await raw.zadd(`${base}:members`, Number(seconds) * 1_000, 'living')
  await raw.rpush(`${base}:living:arrived`, entry('of-the-living'))
  open()
  const names = async () => (await jobs()).map(payload => payload.job_id).toSorted()
  await until('all are jobs', async () => (await names()).length >= 5)
  await until('nothing is left of the dead', async () => (await raw.keys(`${base}:dead:*`)).length === 0)
  expect(await names()).toEqual(['enqueued', 'moved-1', 'moved-2', 'next', 'not-yet'])
  expect(await raw.llen(`${base}:living:arrived`)).toBe(1)
  expect(await redrive.operator.jobs.get(notYet)).toMatchObject({ payload: JSON.parse(entry('not-yet')) })
})

test('a ledger that fails makes it wait, and nothing is lost or doubled', async () => {
  const { redrive, jobs, thumbnail } = await stage()
  const arrivals = ['a', 'b', 'c'].map((id): Arrival => {
    const text = entry(id)
    return { ticket: newId(), text, bytes: text.length, again: false }
  })
  const done: string[] = []
  let asked = 0
  const source = {
    take: async () => (asked++ === 0 ? arrivals : []),
    done: async (tickets: readonly string[]) => void done.push(...tickets),
    interrupt: () => {},
    close: async () => {},
  }
  const { intake } = redrive
  let failures = 0
  const publish: typeof intake.transport.publish = async (made, tx) => {
    failures += 1
    if (failures === 1) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const enqueued = await intake.transport.publish(made, tx)
    // It was written, and the answer lost.
    if (failures === 2) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    return enqueued
  }
  const read = (payload: unknown) => ({ payload })
  const transport = { ...intake.transport, publish }
  const running = inbox({ ...intake, transport }, { source, definition: async () => thumbnail, read })
  running.start()
  onTestFinished(() => running.stop())
  await until('all are done', () => done.length === 3)
  expect(done).toEqual(arrivals.map(({ ticket }) => ticket))
  expect(await jobs()).toHaveLength(3)
})

test('what was taken and not done when it closed is taken over at once', async () => {
  const { raw, list, prefix, redrive, open, jobs } = await stage()
  await raw.rpush(list, entry('a'))
  const base = `${prefix}inbox:${list}`
  const failing = { ...redrive.intake.transport, publish: () => Promise.reject(new Error('the ledger is away')) }
  const { url } = await redisScene()
  const { clock, random } = redrive.intake
  const common = { url, prefix, list, claimAfterMs: 30_000, timeoutMs: 5_000, tls: undefined, clock, random }
  const source = new RedisList({ ...common, maxBytes: 1_000_000, onError: () => {} })
  const { thumbnail } = await stage()
  const options = { source, definition: async () => thumbnail, read: (payload: unknown) => ({ payload }) }
  const failed = new Promise(resolve => redrive.on('error', resolve))
  const running = inbox({ ...redrive.intake, transport: failing }, options)
  running.start()
  await failed
  source.interrupt()
  await running.stop()
  await source.close()
  expect(await raw.zrangebyscore(`${base}:members`, '-inf', 0)).toHaveLength(1)
  open()
  await until('it is a job', async () => (await jobs()).length === 1)
})

test.each([
  [{ list: '' }, 'inbox.list'],
  [{ list: 'x', job: undefined as never }, 'inbox.job'],
  [{ list: 'x', url: 'http://:secret@host' }, 'redis.url is "http:…"'],
  [{ list: 'x', url: undefined as never, env: { REDIS_URL: 'nonsense' } }, 'REDIS_URL'],
  [{ list: 'x', claimAfterMs: 1 }, 'redis.claimAfterMs'],
])('%j is refused', async (options, message) => {
  const open = () => openInbox(library.redrive, { job: 'thumbnail', ...options })
  expect(open).toThrow(message)
  expect(open).not.toThrow('secret')
})
