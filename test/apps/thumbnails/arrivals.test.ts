// The ways in: a file that is dropped into the inbox, a Redis list, the HTTP API, the command line. And the way out of a failure: plain SQL,
// a retry by a person, the archive.
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { watchInbox } from '../../../apps/thumbnails/inbox.js'
import { createHttp, serve } from '../../../src/http/index.js'
import type { JobId } from '../../../src/index.js'
import { run, start } from '../../cli/support/cli.js'
import { askOf, SECRETS, TOKENS } from '../../http/support/desk.js'
import { redisScene } from '../../support/redis.js'
import { until } from '../../support/until.js'
import { look } from './support/look.js'
import { image, video } from './support/media.js'
import { openWorker, type TestWorker } from './support/worker.js'

let folder: string
let worker: TestWorker
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-arrivals-'))
  worker = await openWorker({ MEDIA_DIR: folder })
  return () => rm(folder, { recursive: true, force: true })
})

const put = (key: string, body: Uint8Array) => writeFile(join(folder, key), body)
const thumbnail = async (id: JobId) => look(await readFile(join(folder, (await worker.result(id)).thumbnail_key)))

test('a file that is dropped into the inbox becomes a thumbnail', { timeout: 60_000 }, async () => {
  const enqueued = worker.next('job.enqueued')
  await put('inbox/my film.mp4', await video('mp4'))
  const { job } = await enqueued
  expect((await thumbnail(job.id)).at(0.5, 0.5)).toBe('green') // one second in
})

test('a Redis list, as programs push to it that know nothing of Redrive', { timeout: 60_000 }, async () => {
  const { url, raw, prefix } = await redisScene()
  const media = await mkdtemp(join(tmpdir(), 'redrive-arrivals-'))
  const list = `${prefix}thumbnail_queue`
  const other = await openWorker({ MEDIA_DIR: media, REDIS_URL: url, THUMBNAIL_REDIS_LIST: list })
  onTestFinished(async () => {
    await other.close()
    await rm(media, { recursive: true, force: true })
    for (const key of await raw.keys(`*inbox:${list}*`)) await raw.del(key)
  })
  await writeFile(join(media, 'from-redis.png'), await image('png'))
  const enqueued = other.next('job.enqueued')
  await raw.rpush(list, '{"job_id": "a-1", "input_key": "from-redis.png", "params": {"width": 64, "format": "webp"}}')
  const { job } = await enqueued
  const { thumbnail_key } = await other.result(job.id)
  expect(await look(await readFile(join(media, thumbnail_key)))).toMatchObject({
    format: 'webp',
    width: 64,
    height: 48,
  })
})

test('with an address that is no Redis it does not start, and looks into no inbox', {
  timeout: 120_000,
}, async () => {
  const media = await mkdtemp(join(tmpdir(), 'redrive-arrivals-'))
  onTestFinished(() => rm(media, { recursive: true, force: true }))
  const env = {
    MEDIA_DIR: media,
    REDRIVE_DATA: join(media, '.redrive'),
    REDIS_URL: 'http://nowhere',
    LOG_LEVEL: 'error',
  }
  // Whatever still looked would keep the process from its end.
  const { code, out, err } = await start(['work', 'apps/thumbnails/jobs.ts'], env).ended
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/^redrive: The setup of apps\/thumbnails\/jobs\.ts failed: redis\.url is "http:…"; [^\n]*\n$/)
})

test('the HTTP API', { timeout: 60_000 }, async () => {
  await put('from-http.png', await image('png'))
  const { fetch } = createHttp(worker.redrive, { tokens: TOKENS, env: {} })
  const body = {
    name: 'thumbnail',
    payload: { input_key: 'from-http.png', params: { height: 30 } },
  }
  const answer = await askOf(fetch, 'POST /jobs', { body })
  expect(answer.status).toBeLessThan(300)
  expect(await thumbnail(answer.body.id)).toMatchObject({ format: 'jpeg', width: 40, height: 30 })
})

test('the command line', { timeout: 60_000 }, async () => {
  await put('from the terminal.png', await image('png'))
  const served = await serve(createHttp(worker.redrive, { tokens: TOKENS, env: {} }), { port: 0 })
  onTestFinished(() => served.close())
  const env = { REDRIVE_URL: served.url, REDRIVE_TOKEN: SECRETS.admin }
  const asked = '{"input_key": "from the terminal.png", "params": {"format": "png"}}'
  const { code, out } = await run(['enqueue', 'thumbnail', asked, '-o', 'json'], { env })
  expect(code).toBe(0)
  expect(await thumbnail(JSON.parse(out).id)).toMatchObject({ format: 'png' })
})

test('a failed job is read with plain SQL, retried by a person, and archived', { timeout: 60_000 }, async () => {
  const id = await worker.enqueue('late.png')
  await worker.death(id)
  const failed = () =>
    worker.db.query<Record<string, unknown>>({
      text: `SELECT job_type, status, attempts, last_error, error_stacktrace, input_data FROM redrive.failed_jobs
             WHERE job_id = '${id}'`,
    })
  expect(await failed()).toEqual([
    {
      job_type: 'thumbnail',
      status: 'pending',
      attempts: 1,
      last_error: `There is no file "late.png" in the folder ${folder}`,
      error_stacktrace: expect.stringContaining('folder.ts'),
      input_data: { input_key: 'late.png' },
    },
  ])
  await put('late.png', await image('png'))
  const completed = worker.next('job.completed', event => event.job.id === id)
  await worker.redrive.operator.deadLetters.retry(id, { actor: 'ann', reason: 'the file is there now' })
  await completed
  expect(await readFile(join(folder, `processed/${id}/thumb.jpg`))).toBeDefined()
  await until('it is recovered', async () => (await failed())[0]?.status === 'recovered')
  await worker.redrive.operator.queues.clean('thumbnails', { status: 'dead', graceMs: 0 })
  expect(await failed()).toEqual([])
})

describe('the inbox', () => {
  const LOOK_MS = 5
  const log = { debug() {}, info() {}, warn() {}, error() {} }

  async function watched() {
    const media = await mkdtemp(join(tmpdir(), 'redrive-inbox-'))
    onTestFinished(() => rm(media, { recursive: true, force: true }))
    await mkdir(join(media, 'inbox'))
    const enqueued: string[] = []
    let refuses: (key: string) => boolean = () => false
    const enqueue = async (key: string) => {
      if (refuses(key)) throw new Error('the ledger is away')
      enqueued.push(key)
    }
    return {
      media,
      enqueued,
      refuse: (which: (key: string) => boolean) => {
        refuses = which
      },
      drop: (name: string, text = name) => writeFile(join(media, 'inbox', name), text),
      open: () => watchInbox({ folder: media, enqueue, log, lookMs: LOOK_MS }),
      until: (count: number) => until(`${count} were enqueued`, () => enqueued.length >= count, 30_000),
    }
  }

  test('a restart enqueues nothing again; a changed file is a new one', async () => {
    const { media, drop, open, enqueued, until } = await watched()
    await drop('a.png')
    const close = await open()
    await until(1)
    await close()
    await drop('b.png')
    await drop('.hidden')
    await mkdir(join(media, 'inbox', 'folder'))
    const again = await open()
    await until(2)
    await utimes(join(media, 'inbox', 'a.png'), 1, 1)
    await until(3)
    await again()
    expect(enqueued).toEqual(['inbox/a.png', 'inbox/b.png', 'inbox/a.png'])
  })

  test('a file waits while it cannot be enqueued', async () => {
    const { drop, open, refuse, enqueued, until } = await watched()
    refuse(() => true)
    const close = await open()
    onTestFinished(close)
    await drop('a.png')
    expect(enqueued).toEqual([])
    refuse(() => false)
    await until(1)
    expect(enqueued).toEqual(['inbox/a.png'])
  })

  test('a file that cannot be enqueued keeps no other from it', async () => {
    const { drop, open, refuse, enqueued, until } = await watched()
    let first: string | undefined
    refuse(key => {
      first ??= key
      return key === first
    })
    await drop('a.png')
    await drop('b.png')
    onTestFinished(await open())
    await until(1)
    expect([...enqueued, first].sort()).toEqual(['inbox/a.png', 'inbox/b.png'])
  })

  test('nor does one whose name is not UTF-8', async ({ skip }) => {
    skip(process.platform === 'darwin', 'its file systems take no such name')
    const { media, drop, open, enqueued, until } = await watched()
    const name = Buffer.from('caf\xe9.mp4', 'latin1')
    await writeFile(Buffer.concat([Buffer.from(join(media, 'inbox/')), name]), 'a film')
    await drop('a.png')
    await drop('z.png')
    onTestFinished(await open())
    await until(2)
    expect(enqueued.sort()).toEqual(['inbox/a.png', 'inbox/z.png'])
  })
})
