// What both storages promise: reading in ranges, writing whole or not at all, and errors that say their kind. And what
// FFmpeg reads through them: a part of a large video, not all of it.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { HEAD_BYTES, type Storage } from '../../../apps/thumbnails/storage.js'
import { FolderStorage } from '../../../apps/thumbnails/storages/folder.js'
import { type S3Settings, S3Storage } from '../../../apps/thumbnails/storages/s3.js'
import { createThumbnailApp } from '../../../apps/thumbnails/thumbnail-app.js'
import { classify, type Redrive } from '../../../src/index.js'
import { gate } from '../../support/gate.js'
import { directly } from './support/direct.js'
import { look } from './support/look.js'
import { media, video } from './support/media.js'
import { BUCKET, startS3, type TestS3 } from './support/s3.js'

let s3: TestS3
let folder: string
beforeAll(async () => {
  s3 = await startS3()
  folder = await mkdtemp(join(tmpdir(), 'redrive-storage-'))
  return () => rm(folder, { recursive: true, force: true })
})

const never = new AbortController().signal
const options = { contentType: 'application/octet-stream' }
const s3Storage = (change: Partial<S3Settings> = {}) => {
  const storage = new S3Storage({
    endpoint: s3.env.S3_ENDPOINT,
    bucket: BUCKET,
    region: 'us-east-1',
    credentials: { accessKeyId: s3.env.S3_ACCESS_KEY ?? '', secretAccessKey: s3.env.S3_SECRET_KEY ?? '' },
    ...change,
  })
  onTestFinished(() => storage.close())
  return storage
}

const kindOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    error => `${classify(error).kind}: ${error.message}`,
  )

describe.each<[string, () => Storage]>([
  ['S3', () => s3Storage()],
  ['a folder', () => new FolderStorage(folder)],
])('%s', (name, open) => {
  const key = `deep/down/${name.replace(' ', '-')}.bin`
  const bytes = Buffer.from(Array.from({ length: 3 * HEAD_BYTES }, (_, index) => index % 251))

  test('what was written is read, whole and in ranges', async () => {
    const storage = open()
    await storage.check()
    await storage.write(key, Readable.from([bytes.subarray(0, 1_000), bytes.subarray(1_000)]), options)
    const object = await storage.open(key, never)
    expect(object.size).toBe(bytes.length)
    expect(Buffer.from(object.head).equals(bytes.subarray(0, HEAD_BYTES))).toBe(true)
    const part = await buffer(await object.read(100_000, 100_010, never))
    expect(part.equals(bytes.subarray(100_000, 100_010))).toBe(true)
    for await (const _ of await object.read(0, bytes.length, never)) break // a reader that has had enough
    expect((await buffer(await object.read(0, bytes.length, never))).equals(bytes)).toBe(true)
    await object.close()
  })

  test('a write that breaks off leaves what was there', async () => {
    const storage = open()
    await storage.write(key, bytes, options)
    const broken = Readable.from(
      (async function* () {
        // More than one part of S3.
        for (let parts = 0; parts < 3; parts += 1) yield Buffer.alloc(6 * 1024 * 1024, 1)
        throw new Error('the source broke')
      })(),
    )
    await expect(storage.write(key, broken, options)).rejects.toThrow('the source broke')
    const object = await storage.open(key, never)
    expect(object.size).toBe(bytes.length)
    await object.close()
    expect(await s3.uploads()).toEqual([])
    expect(await readdir(join(folder, '.unfinished')).catch(() => [])).toEqual([])
  })

  test('an empty object, and one that is not there', async () => {
    const storage = open()
    await storage.write('empty', Buffer.alloc(0), options)
    const object = await storage.open('empty', never)
    expect([object.size, object.head.length]).toEqual([0, 0])
    await object.close()
    expect(await kindOf(storage.open('absent', never))).toMatch(/^permanent: There is no /)
  })
})

describe('S3', () => {
  test('a large write goes in parts', async () => {
    const before = s3.requests.POST ?? 0
    await s3Storage().write('large', Readable.from([Buffer.alloc(20 * 1024 * 1024, 5)]), options)
    expect((s3.requests.POST ?? 0) - before).toBe(2) // begun and completed
    expect((await s3.get('large')).length).toBe(20 * 1024 * 1024)
  })

  test('an object that is replaced while it is read is noticed', async () => {
    const storage = s3Storage()
    await s3.put('changing', Buffer.alloc(200_000, 1))
    const object = await storage.open('changing', never)
    await s3.put('changing', Buffer.alloc(200_000, 2))
    expect(await kindOf(object.read(100_000, 100_010, never))).toMatch(
      'transient: "changing" in s3://media was replaced',
    )
  })

  test('nobody there, and nobody who answers: network', async () => {
    const away = s3Storage({ endpoint: 'http://127.0.0.1:1' })
    expect(await kindOf(away.open('any', never))).toBe('network: s3://media does not answer (ECONNREFUSED)')
    expect(await kindOf(away.write('any', Buffer.from('x'), options))).toMatch('network: s3://media does not answer')

    const silent = await startS3()
    silent.fallSilent()
    const slow = s3Storage({ endpoint: silent.env.S3_ENDPOINT, idleMs: 200 })
    expect(await kindOf(slow.open('any', never))).toMatch('network: s3://media does not answer')
  })

  test('storage that breaks off while it is read: network', async () => {
    const leaving = await startS3()
    await leaving.put('long', Buffer.alloc(8_000_000))
    const object = await s3Storage({ endpoint: leaving.env.S3_ENDPOINT }).open('long', never)
    const stream = await object.read(0, object.size, never)
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    await leaving.leave()
    const rest = (async () => {
      while (!(await iterator.next()).done);
    })()
    expect(await kindOf(rest)).toMatch('network: s3://media does not answer')
  })

  test('keys that are not accepted: authentication, and the secret is nowhere', async () => {
    const stranger = s3Storage({ credentials: { accessKeyId: 'STRANGER', secretAccessKey: 'very-secret-words' } })
    const failure = await kindOf(stranger.open('any', never))
    expect(failure).toMatch('authentication: s3://media does not let us use "any"')
    expect(failure).not.toContain('very-secret-words')
    const impostor = s3Storage({ credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'wrong' } })
    expect(await kindOf(impostor.open('any', never))).toMatch('authentication: ')
  })

  test('a bucket that is not there stops the start; one that is away does not', async () => {
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    // It is not asked for anything before storage was looked at.
    const redrive = {} as Redrive
    const start = (change: Record<string, string>) => {
      const env = { PATH: process.env.PATH ?? '', ...s3.env, ...change }
      return createThumbnailApp(env).setup({ redrive, env, log })
    }
    await expect(start({ S3_BUCKET: 'nowhere' })).rejects.toThrow('There is no bucket s3://nowhere')
    const putAway = await start({ S3_ENDPOINT: 'http://127.0.0.1:1' })
    await putAway()
  })

  test('an abort ends a read with its own reason', async () => {
    const stop = new AbortController()
    stop.abort(new Error('the job was cancelled'))
    await expect(s3Storage().open('large', stop.signal)).rejects.toThrow('the job was cancelled')
  })
})

describe('ranged reading', () => {
  // Raw frames: a large file that is quickly made.
  const large = (ending: string) => {
    const format = ending === 'mov' ? 'rgb24' : 'yuv420p'
    return media(ending, '-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25:d=8', '-c:v', 'rawvideo', '-pix_fmt', format)
  }

  test.each(['mov', 'mkv'])('the middle of a large %s costs a part of it', { timeout: 60_000 }, async ending => {
    const bytes = await large(ending)
    await s3.put(`large.${ending}`, bytes)
    const before = s3.sent
    const { ended } = directly(s3.env).attempt(`large.${ending}`, { at: '50%', format: 'png' })
    const { thumbnail_key } = await ended
    const read = s3.sent - before
    console.log(`${ending}: ${read} of ${bytes.length} bytes were read`)
    expect(bytes.length).toBeGreaterThan(20_000_000)
    expect(read).toBeLessThan(bytes.length / 4)
    expect((await look(await s3.get(thumbnail_key))).width).toBe(320)
  })

  test('a small video is read once, with one request, and written with one', { timeout: 60_000 }, async () => {
    await s3.put('small.mp4', await video('mp4'))
    const before = { ...s3.requests }
    await directly(s3.env).attempt('small.mp4').ended
    expect([s3.requests.GET, s3.requests.PUT]).toEqual([(before.GET ?? 0) + 1, (before.PUT ?? 0) + 1])
  })
})

test('a thumbnail appears whole: until it does, its key is empty', async () => {
  const storage = new FolderStorage(folder)
  const half = gate()
  const rest = gate()
  const body = Readable.from(
    (async function* () {
      yield Buffer.alloc(100_000, 1)
      half.open()
      await rest.passed
      yield Buffer.alloc(100_000, 2)
    })(),
  )
  const writing = storage.write('processed/1/thumb.jpg', body, options)
  await half.passed
  await expect(readFile(join(folder, 'processed/1/thumb.jpg'))).rejects.toThrow('ENOENT')
  rest.open()
  await writing
  expect((await readFile(join(folder, 'processed/1/thumb.jpg'))).length).toBe(200_000)
})
