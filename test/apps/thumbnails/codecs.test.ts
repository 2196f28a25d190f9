// Thumbnails of real media, from a server that speaks S3 and from a folder: the thumbnails are decoded, and their size and
// the time they were taken from checked.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { directly } from './support/direct.js'
import { look } from './support/look.js'
import { image, video } from './support/media.js'
import { startS3 } from './support/s3.js'

interface Place {
  readonly worker: ReturnType<typeof directly>
  put(key: string, bytes: Uint8Array): Promise<void>
  get(key: string): Promise<Buffer>
  remove(): Promise<void>
}

const PLACES: Record<string, () => Promise<Place>> = {
  async S3() {
    const s3 = await startS3()
    return { worker: directly(s3.env), put: s3.put, get: s3.get, remove: s3.close }
  },
  async 'a folder'() {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-folder-'))
    return {
      worker: directly({ MEDIA_DIR: folder }),
      put: (key, bytes) => writeFile(join(folder, key), bytes),
      get: key => readFile(join(folder, key)),
      remove: () => rm(folder, { recursive: true, force: true }),
    }
  },
}

const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast']
const VIDEOS: Record<string, () => Promise<Buffer>> = {
  'mpeg4.mp4': () => video('mp4'),
  'h264.mp4': () => video('mp4', { codec: h264, audio: ['-c:a', 'aac'] }),
  'h264-streamable.mp4': () => video('mp4', { codec: [...h264, '-movflags', '+faststart'] }),
  'h264.mkv': () => video('mkv', { codec: h264 }),
  'h264.ts': () => video('ts', { codec: h264 }),
  'h264.flv': () => video('flv', { codec: h264 }),
  'vp8.webm': () => video('webm', { codec: ['-c:v', 'libvpx', '-deadline', 'realtime'] }),
  'vp9.webm': () => video('webm', { codec: ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'] }),
  'mpeg4.avi': () => video('avi'),
  'mpeg2.mpg': () => video('mpg', { codec: ['-c:v', 'mpeg2video', '-r', '25'] }),
  'theora.ogv': () => video('ogv', { codec: ['-c:v', 'libtheora'] }),
  'wmv2.wmv': () => video('wmv', { codec: ['-c:v', 'wmv2'] }),
  'mjpeg.mov': () => video('mov', { codec: ['-c:v', 'mjpeg', '-q:v', '3'] }),
}

describe.each(Object.keys(PLACES))('from %s', place => {
  let at: Place
  beforeAll(async () => {
    at = await (PLACES[place] as () => Promise<Place>)()
    return at.remove
  })

  test('a video of each sort gives the frame that was asked for', { timeout: 120_000 }, async () => {
    const names = place === 'S3' ? Object.keys(VIDEOS) : ['h264.mp4', 'vp9.webm']
    const seen = await Promise.all(
      names.map(async name => {
        await at.put(name, await (VIDEOS[name] as () => Promise<Buffer>)())
        const result = await at.worker.attempt(name, { at: 2.2, width: 80 }).ended
        const thumbnail = await look(await at.get(result.thumbnail_key))
        return [name, thumbnail.format, thumbnail.width, thumbnail.height, thumbnail.at(0.5, 0.5)].join(' ')
      }),
    )
    expect(seen).toEqual(names.map(name => `${name} jpeg 80 60 blue`))
  })

  test('a picture of each sort keeps its content', { timeout: 60_000 }, async () => {
    const endings = ['jpg', 'png', 'webp', 'gif', 'tiff']
    const seen = await Promise.all(
      endings.map(async ending => {
        await at.put(`picture.${ending}`, await image(ending))
        const result = await at.worker.attempt(`picture.${ending}`, { width: 100, format: 'webp' }).ended
        const thumbnail = await look(await at.get(result.thumbnail_key))
        expect(result).toMatchObject({ width: 100, height: 75, bytes: expect.any(Number) })
        return [
          thumbnail.format,
          thumbnail.width,
          thumbnail.height,
          thumbnail.at(0.2, 0.2),
          thumbnail.at(0.8, 0.8),
        ].join(' ')
      }),
    )
    expect(seen).toEqual(endings.map(() => 'webp 100 75 blue red'))
  })
})
