// One attempt: it tells how far it is, ends when it is told to, leaves no FFmpeg behind, and says what its limits mean.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { findFFmpeg } from '../../../apps/thumbnails/ffmpeg.js'
import type { Run } from '../../../apps/thumbnails/limited-run.js'
import { RangedReads } from '../../../apps/thumbnails/ranged-reads.js'
import type { Storage } from '../../../apps/thumbnails/storage.js'
import { FolderStorage } from '../../../apps/thumbnails/storages/folder.js'
import { videoFailure } from '../../../apps/thumbnails/video-failure.js'
import { gate } from '../../support/gate.js'
import { until } from '../../support/until.js'
import { directly, runJob } from './support/direct.js'
import { look } from './support/look.js'
import { image, media, video } from './support/media.js'

let folder: string
let worker: ReturnType<typeof directly>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-attempt-'))
  worker = directly({ MEDIA_DIR: folder })
  return () => rm(folder, { recursive: true, force: true })
})

const put = (key: string, body: Uint8Array) => writeFile(join(folder, key), body)
const thumbnail = async (key: string) => look(await readFile(join(folder, key)))

describe('what it gives', () => {
  test('the same job writes the same key again', { timeout: 60_000 }, async () => {
    await put('again.png', await image('png'))
    const first = worker.attempt('again.png')
    await first.ended
    const before = await readFile(join(folder, `processed/${first.id}/thumb.jpg`))
    const second = worker.attempt('again.png', {}, first.id)
    expect((await second.ended).thumbnail_key).toBe((await first.ended).thumbnail_key)
    expect((await readFile(join(folder, `processed/${first.id}/thumb.jpg`))).equals(before)).toBe(true)
    expect(await readdir(join(folder, `processed/${first.id}`))).toEqual(['thumb.jpg'])
  })

  test('each fit, and pictures that are smaller than asked for', { timeout: 60_000 }, async () => {
    await put('wide.mp4', await video('mp4', { size: '320x80' }))
    await put('wide.png', await image('png', '320x80'))
    for (const key of ['wide.mp4', 'wide.png']) {
      const size = async (params: Parameters<typeof worker.attempt>[1]) => {
        const { thumbnail_key, width, height } = await worker.attempt(key, params).ended
        const seen = await thumbnail(thumbnail_key)
        expect([seen.width, seen.height]).toEqual([width, height])
        return `${width}x${height}`
      }
      expect(await size({ width: 100, height: 100 })).toBe('100x25')
      expect(await size({ width: 1000 })).toBe('320x80')
      expect(await size({ height: 40 })).toBe('160x40')
      expect(await size({ width: 100, height: 100, fit: 'cover' })).toBe('100x100')
      expect(await size({ width: 400, height: 400, fit: 'contain' })).toBe('400x400')
      expect(await size({ width: 50, height: 60, fit: 'fill' })).toBe('50x60')
    }
  })

  test('a video is shown as it is watched: with square pixels', { timeout: 60_000 }, async () => {
    await put('wide-pixels.mp4', await wide())
    const { width, height } = await worker.attempt('wide-pixels.mp4').ended
    expect([width, height]).toEqual([320, 120])
  })

  test('the frame at a second, at a share, and without a wish', { timeout: 60_000 }, async () => {
    await put('colours.mp4', await video('mp4'))
    await put('short.mp4', await video('mp4', { seconds: 0.5 }))
    const colour = async (key: string, params?: Parameters<typeof worker.attempt>[1]) =>
      (await thumbnail((await worker.attempt(key, params).ended).thumbnail_key)).at(0.5, 0.5)
    expect(await colour('colours.mp4', { at: 0 })).toBe('red')
    expect(await colour('colours.mp4', { at: '50%' })).toBe('green')
    expect(await colour('colours.mp4', { at: '100%' })).toBe('blue')
    expect(await colour('colours.mp4', { at: 2.95 })).toMatch(/green|blue/) // behind the last frame, before the end
    expect(await colour('short.mp4')).toBe('red')
  })
})

test('while it waits for storage it tells how far it is; aborted, it ends at once and FFmpeg with it', async () => {
  await put(
    'large.avi',
    await media('avi', '-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=10:d=2', '-c:v', 'mjpeg', '-q:v', '1'),
  )
  const ranged = new RangedReads()
  onTestFinished(() => ranged.close())
  const reading = gate()
  const attempt = runJob(
    { storage: stuck(new FolderStorage(folder), reading.open), ranged, ffmpeg: findFFmpeg(process.env) },
    'large.avi',
  )
  await reading.passed
  if (process.platform === 'linux') expect(await ffmpegs()).toHaveLength(1)
  await until('progress was told', () => attempt.progress.length > 0, 30_000)
  expect(attempt.progress[0]).toMatchObject({ step: 'decoding', bytes_read: 65_536, bytes: expect.any(Number) })
  attempt.abort(new Error('cancelled by a person'))
  await expect(attempt.ended).rejects.toThrow('cancelled by a person')
  await until('FFmpeg is gone', async () => (await ffmpegs()).length === 0, 30_000)
}, 60_000)

test('a reader that goes away while storage is waited for leaves that on record', async () => {
  await put('slow.bin', Buffer.alloc(200_000))
  const ranged = new RangedReads()
  onTestFinished(() => ranged.close())
  const reading = gate()
  const { signal } = new AbortController()
  const object = await stuck(new FolderStorage(folder), reading.open).open('slow.bin', signal)
  onTestFinished(() => object.close())
  const offer = await ranged.offer(object, signal)
  const reader = new AbortController()
  const asked = await fetch(offer.url, { headers: { range: 'bytes=0-' }, signal: reader.signal })
  expect([asked.status, asked.headers.get('content-range')]).toEqual([206, 'bytes 0-199999/200000'])
  await reading.passed
  reader.abort()
  await until('storage is not read any more', () => object.aborted)
  expect([offer.waiting, offer.failure, offer.bytesRead]).toEqual([true, undefined, 65_536])
  expect((await fetch(`${offer.url}x`)).status).toBe(404)
  expect((await fetch(offer.url, { headers: { range: 'bytes=200000-' } })).status).toBe(416)
})

describe('what the end of FFmpeg means', () => {
  const limits = { timeMs: 60_000, cpuSeconds: 9, memoryBytes: 1, outputBytes: 10 }
  const failure = (end: Run['end'], storageSlow = false, words = '') => {
    const { kind, message, service } = videoFailure({ output: Buffer.alloc(0), words, end }, 'a', {
      limits,
      storageSlow,
    })
    return `${kind}${service === undefined ? '' : ` of ${service}`}: ${message}`
  }

  test.each<[string, string]>([
    [failure({ type: 'time' }, true), 'network of s3: Storage was too slow to read "a" within 60 s'],
    [failure({ type: 'time' }), 'transient of ffmpeg: "a" could not be decoded within 60 s'],
    [failure({ type: 'output' }), 'permanent: The frame of "a" is larger than 10 bytes'],
    [failure({ type: 'killed', signal: 'SIGSEGV' }), 'permanent: FFmpeg crashed on "a" (SIGSEGV)'],
    [failure({ type: 'killed', signal: 'SIGKILL' }), 'system of ffmpeg: FFmpeg was killed (SIGKILL) while it read "a"'],
    [failure({ type: 'exited', code: 255 }), 'permanent: "a" needs more than 9 s of processor time'],
    [
      failure({ type: 'exited', code: 1 }, false, 'x: Cannot allocate memory'),
      'permanent: "a" needs more memory to decode than allowed',
    ],
  ])('%s', (said, expected) => {
    expect(said).toBe(expected)
  })
})

/** Storage that gives the head of an object and then nothing more, until the reading is aborted. */
const stuck = (storage: Storage, onRead: () => void) => ({
  name: 'a storage that is stuck',
  write: storage.write.bind(storage),
  check: async () => {},
  close: async () => {},
  open: async (key: string, signal: AbortSignal) => {
    const object = {
      ...(await storage.open(key, signal)),
      aborted: false,
      read: (_start: number, _end: number, reading: AbortSignal) => {
        onRead()
        return new Promise<never>((_, reject) =>
          reading.addEventListener('abort', () => {
            object.aborted = true
            reject(reading.reason)
          }),
        )
      },
    }
    return object
  },
})

const wide = () => media('mp4', '-f', 'lavfi', '-i', 'color=red:s=160x120:r=10:d=2,setsar=2', '-c:v', 'mpeg4')

/** FFmpegs that this process has started and that still run. */
async function ffmpegs(): Promise<string[]> {
  const numbers = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))
  const lines = await Promise.all(
    numbers.map(async number => {
      const stat = await readFile(`/proc/${number}/stat`, 'utf8').catch(() => '')
      const [, state, parent] = /\) (\w) (\d+)/.exec(stat) ?? []
      const ours = Number(parent) === process.pid && state !== 'Z'
      return ours ? readFile(`/proc/${number}/cmdline`, 'utf8').catch(() => '') : ''
    }),
  )
  return lines.filter(line => line.includes('image2pipe'))
}
