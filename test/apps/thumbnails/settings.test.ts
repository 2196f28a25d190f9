// Settings from the environment, and what a file is by its first bytes.
import { availableParallelism } from 'node:os'
import { describe, expect, test } from 'vitest'
import { mediaType } from '../../../apps/thumbnails/media-type.js'
import { readSettings } from '../../../apps/thumbnails/settings.js'
import { FolderStorage } from '../../../apps/thumbnails/storages/folder.js'

describe('settings', () => {
  test('with nothing set, a folder and as many decoders as there are processors', async () => {
    const settings = readSettings({})
    expect(settings).toMatchObject({ folder: 'media', decoders: availableParallelism(), maxPixels: 100_000_000 })
    expect(settings.redis).toBeUndefined()
    expect(await settings.openStorage()).toBeInstanceOf(FolderStorage)
  })

  test('with a bucket, S3; with a Redis, its list', async () => {
    const env = { S3_BUCKET: 'media', S3_ENDPOINT: 'http://minio:9000', REDIS_URL: 'redis://queue' }
    const settings = readSettings(env)
    expect(settings.folder).toBeUndefined()
    expect(settings.redis).toEqual({ url: 'redis://queue', list: 'thumbnail_queue' })
    const storage = await settings.openStorage()
    expect(storage.name).toBe('s3://media')
    await storage.close()
  })

  test.each<[Record<string, string>, string]>([
    [{ S3_ENDPOINT: 'http://minio' }, 'S3_BUCKET is missing; with any other S3_ setting it must name the bucket'],
    [{ S3_BUCKET: 'a', S3_ENDPOINT: 'minio:9000' }, 'S3_ENDPOINT is "minio:9000"; it must be a URL of http or https'],
    [{ S3_BUCKET: 'a', S3_SECRET_KEY: 'hush' }, 'S3_ACCESS_KEY and S3_SECRET_KEY go together: one is missing'],
    [{ THUMBNAIL_CONCURRENCY: '0' }, 'THUMBNAIL_CONCURRENCY is "0"; it must be a whole number from 1 to 256'],
    [{ THUMBNAIL_MEMORY_MB: '1e9' }, 'THUMBNAIL_MEMORY_MB is "1e9"; it must be a whole number from 256 to 65536'],
  ])('%j', (env, message) => {
    expect(() => readSettings(env)).toThrow(message)
  })
})

describe('what a file is', () => {
  const bytes = (text: string, length = 600) => Buffer.concat([Buffer.from(text, 'latin1'), Buffer.alloc(length)])
  const packets = Buffer.concat(Array.from({ length: 4 }, () => bytes('G', 187)))

  test.each<[string, Buffer, string]>([
    ['MP4', bytes('\0\0\0\x18ftypisom'), 'video mov'],
    ['QuickTime without a brand', bytes('\0\0\0\x08wide'), 'video mov'],
    ['Matroska', bytes('\x1a\x45\xdf\xa3'), 'video matroska'],
    ['AVI', bytes('RIFF\0\0\0\0AVI '), 'video avi'],
    ['a transport stream', packets, 'video mpegts'],
    ['AVIF', bytes('\0\0\0\x1cftypavif\0\0\0\0avifmif1'), 'image avif'],
    ['AVIF of a general brand', bytes('\0\0\0\x1cftypmif1\0\0\0\0mif1avif'), 'image avif'],
    ['WebP', bytes('RIFF\0\0\0\0WEBP'), 'image webp'],
    ['JPEG', bytes('\xff\xd8\xff\xe0'), 'image jpeg'],
  ])('%s', (_, head, expected) => {
    const media = mediaType(head, 'a')
    expect(`${media.type} ${media.type === 'video' ? media.demuxer : media.format}`).toBe(expected)
  })

  test.each<[Buffer, string]>([
    [bytes('\0\0\0\x18ftypheic\0\0\0\0mif1heic'), '"a" is a HEIC picture, not a video or picture that is known here'],
    [bytes('PK\x03\x04'), '"a" is a ZIP archive, not a video or picture that is known here'],
    [bytes('RIFF\0\0\0\0WAVE'), '"a" is audio, not a video or picture that is known here'],
    [bytes('G'), '"a" is neither a video nor a picture that is known here'],
    [Buffer.alloc(0), '"a" is empty'],
  ])('%j is refused', (head, message) => {
    expect(() => mediaType(head, 'a')).toThrow(message)
  })
})
