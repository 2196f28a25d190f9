// Pictures, by sharp: decoding images of strangers within limits, and making the thumbnail itself. sharp took a seventh of
// FFmpeg's time or less on JPEG, PNG and WebP (README). It works in this process, so only the loaders that are needed are open.
import { createWriteStream } from 'node:fs'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { PermanentError, ValidationError } from 'redrive'
import sharp, { type Sharp } from 'sharp'
import { boxOf, type ThumbnailParams } from './payload.js'
import type { StoredObject } from './storage.js'

sharp.cache(false) // no input comes twice
sharp.concurrency(1) // several jobs run at once instead
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Tiff', 'Heif'].map(format => `VipsForeignLoad${format}`),
})

const MOST_IMAGE_BYTES = 256 * 1024 * 1024
const LONGEST_SECONDS = 60
const TEMPORARY = 'redrive-thumbnail-'
const LEFT_BEHIND_MS = 24 * 3_600_000

export interface Thumbnail {
  readonly data: Buffer
  readonly width: number
  readonly height: number
}

/** The thumbnail of an image in storage. It waits in a temporary file: sharp would hold a stream whole in memory. */
export async function imageThumbnail(
  object: StoredObject,
  params: ThumbnailParams,
  { maxPixels, signal }: { readonly maxPixels: number; readonly signal: AbortSignal },
): Promise<Thumbnail> {
  const shown = JSON.stringify(object.key)
  if (object.size > MOST_IMAGE_BYTES)
    throw new ValidationError(`${shown} has ${object.size} bytes; an image may have ${MOST_IMAGE_BYTES}`)
  if (object.size <= object.head.length) return makeThumbnail(Buffer.from(object.head), params, shown, maxPixels)
  const folder = await mkdtemp(join(tmpdir(), TEMPORARY))
  try {
    const file = join(folder, 'input')
    await pipeline(await object.read(0, object.size, signal), createWriteStream(file), { signal })
    return await makeThumbnail(file, params, shown, maxPixels)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The thumbnail of a picture: a file, or an image that is small enough to be at hand. */
export async function makeThumbnail(
  input: string | Buffer,
  params: ThumbnailParams,
  shown: string,
  maxPixels: number,
): Promise<Thumbnail> {
  try {
    const picture = sharp(input, { limitInputPixels: maxPixels, failOn: 'error', sequentialRead: true, pages: 1 })
      .autoOrient()
      .resize({
        ...boxOf(params),
        fit: params.fit,
        withoutEnlargement: params.fit === 'inside',
        background: '#fff',
      })
      .timeout({ seconds: LONGEST_SECONDS })
    const { data, info } = await encoded(picture, params).toBuffer({ resolveWithObject: true })
    return { data, width: info.width, height: info.height }
  } catch (error) {
    throw imageFailure(error, shown, maxPixels)
  }
}

function encoded(picture: Sharp, { format, quality }: ThumbnailParams): Sharp {
  switch (format) {
    case 'jpg':
      return picture.flatten({ background: '#fff' }).jpeg({ quality })
    case 'png':
      return picture.png()
    case 'webp':
      return picture.webp({ quality })
  }
}

function imageFailure(error: unknown, shown: string, maxPixels: number): Error {
  const { message } = error as Error
  if (/pixel limit/i.test(message))
    return new ValidationError(`${shown} has more pixels than allowed (${maxPixels})`, { cause: error })
  if (/timeout/i.test(message))
    return new PermanentError(`${shown} took longer than ${LONGEST_SECONDS} s to decode`, { cause: error })
  return new PermanentError(`${shown} is damaged or not what it seems: ${message.split('\n')[0]}`, { cause: error })
}

/** Removes what processes that were killed long ago left in the temporary folder. */
export async function sweepTemporary(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(TEMPORARY)) continue
    const folder = join(tmpdir(), name)
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > LEFT_BEHIND_MS) await rm(folder, { recursive: true, force: true })
  }
}
