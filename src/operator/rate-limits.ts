// What a person may do about rate limits: see where they stand, and change them while everything runs.
import { invalid } from '../domain/errors.js'
import type { Json } from '../domain/json.js'
import { LIMITS } from '../domain/limits.js'
import { checkName } from '../domain/names.js'
import type { RateLimitSettings } from '../domain/rate-limit.js'
import { writeAudit } from '../ledger/audit.js'
import {
  followRateLimit,
  type RateLimitSetting,
  type RateLimitState,
  rateLimitSetting,
  rateLimitSettings,
  rateLimitStates,
  setRateLimit,
  unsetRateLimit,
} from '../ledger/rate-limit-setting.js'
import { paceOf, parseRateLimit } from '../policy/rate.js'
import { type Acting, actorOf, type Desk, pageLimit } from './context.js'

/** As an operator writes it. */
export type RateLimitChange = Omit<RateLimitSettings, 'burst'> & Partial<Pick<RateLimitSettings, 'burst'>>

export interface RateLimitFilter {
  readonly name?: string
  /** The last of the page before. */
  readonly after?: { readonly name: string; readonly key: string }
  readonly limit?: number
}

/** A slot that was given out is used within this time. */
const GIVEN_AHEAD_MS = 500
const MOST_SETTINGS = 1_000

export function rateLimits({ db }: Desk) {
  return {
    /** Limits and keys that were used lately: the next free start, and how many jobs are held. */
    list: async ({ limit, ...filter }: RateLimitFilter = {}): Promise<RateLimitState[]> =>
      rateLimitStates(db, { ...filter, limit: pageLimit(limit) }),

    /** What was set at run time; of one limit or of all. */
    settings: (name?: string): Promise<RateLimitSetting[]> => rateLimitSettings(db, name ?? null, MOST_SETTINGS),

    /**
     * Beats what the code says of a limit, for all its keys or for one; null: the code holds again. The whole fleet follows
     * at once, jobs that are held as well.
     */
    async set(
      name: string,
      change: RateLimitChange | null,
      { key = '', ...acting }: Acting & { readonly key?: string } = {},
    ): Promise<void> {
      checkName('The name of the rate limit', name)
      if (typeof key !== 'string' || key.length > LIMITS.keyChars || key.includes('\0')) {
        throw invalid('key', key, `text of up to ${LIMITS.keyChars} characters`)
      }
      const settings = change === null ? null : parseRateLimit(change, `rate limit ${name}`)
      await db.transaction(async tx => {
        const was = await rateLimitSetting(tx, name, key)
        if (settings) await setRateLimit(tx, { name, key }, settings, paceOf(settings), actorOf(acting))
        else await unsetRateLimit(tx, name, key)
        await followRateLimit(tx, name, key, GIVEN_AHEAD_MS)
        await writeAudit(tx, {
          actor: actorOf(acting),
          action: 'set rate limit',
          targetType: 'rate_limit',
          target: key === '' ? name : `${name}/${key}`,
          before: was ? asJson(was) : null,
          after: settings ? asJson(settings) : null,
          ...(acting.reason !== undefined && { reason: acting.reason }),
        })
      })
    },
  }
}

const asJson = ({ limit, intervalMs, burst }: RateLimitSettings): Json => ({ limit, intervalMs, burst })

export type RateLimits = ReturnType<typeof rateLimits>
