// What cannot become a thumbnail: each dies at once, of the right kind, with a message that a person understands. What may
// heal is tried again.
import { beforeAll, describe, expect, test } from 'vitest'
import { image, media, video } from './support/media.js'
import { startS3, type TestS3 } from './support/s3.js'
import { openWorker, type TestWorker } from './support/worker.js'

let s3: TestS3
let worker: TestWorker
beforeAll(async () => {
  s3 = await startS3()
  worker = await openWorker({ ...s3.env, THUMBNAIL_MAX_MEGAPIXELS: '1' })
})

async function diesAs(key: string, body: Uint8Array, params?: Parameters<TestWorker['died']>[1]) {
  await s3.put(key, body)
  const letter = await worker.died(key, params)
  expect(letter.totalAttempts).toBe(1)
  return `${letter.kind}: ${letter.message}`
}

const SOUND = ['-f', 'lavfi', '-i', 'sine=d=1']
const firstHalf = (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)

describe('videos', () => {
  test.each<[string, () => Promise<Uint8Array>, string]>([
    ['empty.mp4', async () => Buffer.alloc(0), 'validation: "empty.mp4" is empty'],
    ['noise.mp4', async () => Buffer.alloc(5_000, 7), 'validation: "noise.mp4" is neither a video nor a picture that'],
    ['cut.mp4', async () => firstHalf(await video('mp4')), 'permanent: "cut.mp4" is incomplete or damaged: its index'],
    [
      'header-only.mkv',
      async () => (await video('mkv')).subarray(0, 40),
      'permanent: "header-only.mkv" is damaged or not what it seems: FFmpeg cannot read it',
    ],
    ['garbage.mkv', async () => garbled(await video('mkv'), 60), 'permanent: "garbage.mkv" '],
    [
      'sound.m4a',
      () => media('m4a', ...SOUND, '-c:a', 'aac'),
      'validation: "sound.m4a" has no video in it: is it audio only?',
    ],
    ['sound.ogg', () => media('ogg', ...SOUND, '-c:a', 'flac'), 'validation: "sound.ogg" has no video'],
    ['sound.wav', () => media('wav', ...SOUND), 'validation: "sound.wav" is audio, not a video'],
    [
      'no-frames.mp4',
      () => media('mp4', '-f', 'lavfi', '-i', 'color=red:s=64x64:d=1', '-c:v', 'mpeg4', '-frames:v', '0'),
      '"no-frames.mp4" ',
    ],
    [
      'huge.mkv',
      () => media('mkv', '-f', 'lavfi', '-i', 'color=red:s=2000x1000:r=1:d=1', '-c:v', 'mjpeg'),
      'validation: "huge.mkv" has frames that are larger than allowed',
    ],
    [
      'foreign.avi',
      () => media('avi', ...SOUND, '-f', 'lavfi', '-i', 'color=red:s=64x64:r=10:d=1', '-c:a', 'mp2', '-c:v', 'zmbv'),
      'validation: "foreign.avi" is encoded with zmbv, which is not decoded here',
    ],
    [
      'garbled-frames.mp4',
      async () => garbled(await video('mp4', { audio: ['-c:a', 'aac', '-movflags', '+faststart'] }), 'mdat'),
      'permanent: "garbled-frames.mp4" ',
    ],
  ])('%s', { timeout: 60_000 }, async (key, make, expected) => {
    expect(await diesAs(key, await make())).toContain(expected)
  })

  test('a time behind the end says so', { timeout: 60_000 }, async () => {
    expect(await diesAs('short.mp4', await video('mp4'), { at: 60 })).toBe(
      'validation: "short.mp4" has no frame at 60 s: it is shorter',
    )
  })

  test('what FFmpeg said is kept with the failure', { timeout: 60_000 }, async () => {
    await s3.put('cut-again.mp4', firstHalf(await video('mp4')))
    const { causes, stack } = await worker.died('cut-again.mp4')
    expect(causes[0]?.message).toContain('moov atom not found')
    expect(causes[0]?.message).not.toContain('127.0.0.1')
    expect(stack).toContain('video-f')
    const frames = await video('mp4', { audio: ['-c:a', 'aac', '-movflags', '+faststart'] })
    await s3.put('garbled-again.mp4', garbled(frames, 'mdat'))
    expect((await worker.died('garbled-again.mp4')).causes[0]?.message).toMatch(/mpeg4|decod/)
  })
})

describe('pictures', () => {
  test.each<[string, () => Promise<Uint8Array>, string]>([
    ['cut.png', async () => firstHalf(await image('png')), 'permanent: "cut.png" is damaged'],
    ['cut.jpg', async () => firstHalf(await image('jpg')), 'permanent: "cut.jpg" is damaged'],
    ['bomb.png', () => image('png', '4000x4000'), 'validation: "bomb.png" has more pixels than allowed (1000000)'],
    ['said-to-be.jpg', async () => Buffer.from('ffd8ff', 'hex'), 'permanent: "said-to-be.jpg" is damaged'],
  ])('%s', { timeout: 60_000 }, async (key, make, expected) => {
    expect(await diesAs(key, await make())).toContain(expected)
  })
})

describe('storage', () => {
  test('an object that is not there: permanent', async () => {
    const { kind, message, totalAttempts } = await worker.died('nobody/put/this.mp4')
    expect({ kind, message, totalAttempts }).toEqual({
      kind: 'permanent',
      message: 'There is no object "nobody/put/this.mp4" in s3://media',
      totalAttempts: 1,
    })
  })
})

test('a payload that is wrong is refused when it is enqueued', async () => {
  const { redrive, app } = worker
  const enqueue = (payload: unknown) => redrive.enqueue(app.thumbnail, payload as never)
  await expect(enqueue({ input_key: '' })).rejects.toThrow('input_key')
  await expect(enqueue({ input_key: 'a', params: { width: 100_000 } })).rejects.toThrow('width')
  await expect(enqueue({ input_key: 'a', params: { at: '-1' } })).rejects.toThrow('at')
  await expect(enqueue({ input_key: 'a', params: { fit: 'cover', width: 10 } })).rejects.toThrow(
    'both width and height',
  )
  await expect(enqueue({ input_key: 'a', params: { colour: 'red' } })).rejects.toThrow('colour')
})

/** Whole up to here, and then not what it was. */
function garbled(bytes: Buffer, from: number | string): Buffer {
  const copy = Buffer.from(bytes)
  const start = typeof from === 'number' ? from : copy.indexOf(from) + from.length
  for (let at = start; at < copy.length; at += 1) copy[at] = (at * 31) % 256
  return copy
}
