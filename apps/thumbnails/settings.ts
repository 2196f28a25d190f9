// Settings of the thumbnail worker, from the environment. A bad one stops the start with one line.
import { availableParallelism } from 'node:os'
import { RedriveError } from 'redrive'
import type { Storage } from './storage.js'
import { FolderStorage } from './storages/folder.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  /** Undefined: media lives in S3. */
  readonly folder: string | undefined
  openStorage(): Promise<Storage>
  /** The list that other programs push jobs to; undefined: none. */
  readonly redis: { readonly url: string; readonly list: string } | undefined
  /** How many are decoded at once. */
  readonly decoders: number
  readonly maxPixels: number
  readonly memoryBytes: number
}

const MEGABYTE = 1024 * 1024
const MEGAPIXEL = 1_000_000

export function readSettings(env: Environment): Settings {
  const s3 = s3Settings(env)
  const folder = env.MEDIA_DIR || 'media'
  return {
    folder: s3 ? undefined : folder,
    openStorage: async () => {
      if (!s3) return new FolderStorage(folder)
      // The SDK is large: it is loaded only where it is used.
      const { S3Storage } = await import('./storages/s3.js')
      return new S3Storage(s3)
    },
    redis: env.REDIS_URL ? { url: env.REDIS_URL, list: env.THUMBNAIL_REDIS_LIST || 'thumbnail_queue' } : undefined,
    decoders: whole(env, 'THUMBNAIL_CONCURRENCY', 1, 256) ?? availableParallelism(),
    maxPixels: (whole(env, 'THUMBNAIL_MAX_MEGAPIXELS', 1, 1_000) ?? 100) * MEGAPIXEL,
    memoryBytes: (whole(env, 'THUMBNAIL_MEMORY_MB', 256, 65_536) ?? 2_048) * MEGABYTE,
  }
}

const S3_NAMES = ['S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY', 'S3_SECRET_KEY']

/** Undefined: no S3 is meant. */
function s3Settings(env: Environment) {
  if (S3_NAMES.every(name => !env[name])) return undefined
  const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION } = env
  if (!S3_BUCKET) throw invalid('S3_BUCKET is missing; with any other S3_ setting it must name the bucket')
  if (S3_ENDPOINT && !/^https?:$/.test(URL.canParse(S3_ENDPOINT) ? new URL(S3_ENDPOINT).protocol : ''))
    throw invalid(`S3_ENDPOINT is ${JSON.stringify(S3_ENDPOINT)}; it must be a URL of http or https`)
  // Their values are secrets: not even a wrong one is shown.
  if (!S3_ACCESS_KEY !== !S3_SECRET_KEY) throw invalid('S3_ACCESS_KEY and S3_SECRET_KEY go together: one is missing')
  const credentials =
    S3_ACCESS_KEY && S3_SECRET_KEY ? { accessKeyId: S3_ACCESS_KEY, secretAccessKey: S3_SECRET_KEY } : undefined
  return { endpoint: S3_ENDPOINT || undefined, bucket: S3_BUCKET, region: S3_REGION || 'us-east-1', credentials }
}

function whole(env: Environment, name: string, least: number, most: number): number | undefined {
  const value = env[name]
  if (!value) return undefined
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= least && number <= most))
    throw invalid(
      `${name} is ${JSON.stringify(value.slice(0, 100))}; it must be a whole number from ${least} to ${most}`,
    )
  return number
}

const invalid = (message: string) => new RedriveError('SETTING_INVALID', message)
