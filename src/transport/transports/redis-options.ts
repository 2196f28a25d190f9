// What may be said about Redis, checked before anything is connected.
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { invalid } from '../../domain/errors.js'

export interface RedisOptions {
  /** `redis://user:password@host:port/db`, or `rediss://` for TLS (REDIS_URL, redis://127.0.0.1:6379). */
  readonly url?: string
  /** For `rediss://`, where the system's own trust is not enough: `ca`, `cert`, `key`… */
  readonly tls?: TlsOptions
  /** What every key begins with (`redrive:`). */
  readonly prefix?: string
  /** What enqueue does while Redis is away: fail, or put the job into the ledger. */
  readonly whenDown?: 'fail' | 'park'
  /** After so long without a sign of life another worker takes over what one has in hand (60 s). */
  readonly claimAfterMs?: number
  /** Every call has to be answered within this (5 s). */
  readonly timeoutMs?: number
  /** Enqueue waits until so many replicas have the job as well (0). */
  readonly replicas?: number
}

export interface CheckedRedisOptions {
  readonly url: string
  readonly tls: TlsOptions | undefined
  readonly prefix: string
  readonly claimAfterMs: number
  readonly timeoutMs: number
  readonly replicas: number
}

const DEFAULTS = { url: 'redis://127.0.0.1:6379', prefix: 'redrive:', claimAfterMs: 60_000, timeoutMs: 5_000 } as const

type Environment = Readonly<Record<string, string | undefined>>

export function checkRedisOptions(options: RedisOptions, env: Environment): CheckedRedisOptions {
  return {
    url: redisUrl(options.url, env),
    tls: options.tls,
    prefix: prefix(options.prefix ?? DEFAULTS.prefix),
    claimAfterMs: whole('redis.claimAfterMs', options.claimAfterMs ?? DEFAULTS.claimAfterMs, 200, 86_400_000),
    timeoutMs: whole('redis.timeoutMs', options.timeoutMs ?? DEFAULTS.timeoutMs, 100, 600_000),
    replicas: whole('redis.replicas', options.replicas ?? 0, 0, 100),
  }
}

export function checkWhenDown(value: unknown = 'fail'): 'fail' | 'park' {
  if (value !== 'fail' && value !== 'park') throw invalid('redis.whenDown', value, "'fail' or 'park'")
  return value
}

/** Never shown whole: it may have a password in it. */
export function redisUrl(url: unknown, env: Environment): string {
  const text = url ?? (env.REDIS_URL || DEFAULTS.url)
  const parsed = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
  if (parsed?.protocol === 'redis:' || parsed?.protocol === 'rediss:') return text as string
  const what = url === undefined ? 'REDIS_URL' : 'redis.url'
  throw invalid(what, parsed ? `${parsed.protocol}…` : 'no URL', 'a URL that begins with redis:// or rediss://')
}

const MOST_PREFIX_CHARS = 100

function prefix(text: unknown): string {
  if (typeof text === 'string' && text.length <= MOST_PREFIX_CHARS && text.isWellFormed()) return text
  throw invalid('redis.prefix', text, `text of at most ${MOST_PREFIX_CHARS} characters`)
}

export function whole(what: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  throw invalid(what, value, `a whole number from ${least} to ${most}`)
}
