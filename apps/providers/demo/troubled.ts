// Providers that fail in ways that are worth a look: one that heals, one that has to be asked slowly, one that nobody may
// ask, one whose tool crashes, and one with a mistake in it.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { RateLimitedError, SystemError } from 'redrive'
import type { Provider } from '../provider.js'

const SUCCEEDS_ON = 3
const QUOTA = 5
const QUOTA_WINDOW_MS = 10_000

/** Fails twice, as a gateway does that restarts. */
export const flaky: Provider = {
  create: async (_request, { attempt }) => {
    if (attempt < SUCCEEDS_ON) throw Object.assign(new Error('Gateway is restarting'), { status: 503 })
    return { attempt }
  },
}

/** So many in ten seconds; says when to come back. */
export function withQuota(now: () => number = Date.now): Provider {
  let windowStart = now()
  let used = 0
  return {
    create: async () => {
      if (now() - windowStart >= QUOTA_WINDOW_MS) {
        windowStart = now()
        used = 0
      }
      if (used >= QUOTA) {
        const retryAfterMs = Math.max(1, windowStart + QUOTA_WINDOW_MS - now())
        throw new RateLimitedError('Quota exceeded for Machine in westeurope', { retryAfterMs })
      }
      used += 1
      return { used }
    },
  }
}

/** Nobody granted it access. */
export const forbidden: Provider = {
  get: async () => {
    throw Object.assign(new Error('The worker has no role on this vault'), { status: 403 })
  },
}

const run = promisify(execFile)

/** Calls a program that is killed in the middle of it. The worker goes on; the job is tried again. */
export const crashing: Provider = {
  create: async (_request, { signal }) => {
    try {
      await run(process.execPath, ['--eval', "process.kill(process.pid, 'SIGKILL')"], { signal, timeout: 30_000 })
    } catch (cause) {
      const { signal: by } = cause as { signal?: string }
      throw new SystemError(`The tool that creates it was ended by ${by ?? 'an error'}`, { cause })
    }
  },
}

/** A mistake in the provider's own code: no retry will mend it. */
export const mistaken: Provider = {
  update: async request => (request as { tags: { owner: string } }).tags.owner.trim(),
}
