// The jobs of the outage: the same for the process that enqueues them and for those that run them.
import { defineJob, exponential, type ServiceSettings } from '../../../src/index.js'

export interface OutageConfig {
  readonly database: string
  /** Where both services answer: under /files and /mail. */
  readonly address: string
  readonly services: Readonly<Record<string, ServiceSettings>>
}

/** Everything that takes time in an outage, a tenth of what it is by default. */
export const TENTH = {
  breaker: {
    windowMs: 3_000,
    openMs: 500,
    openMaxMs: 6_000,
    probeTimeoutMs: 6_000,
    releasePerSecond: 20,
    releaseDoublingMs: 500,
    releaseMs: 5_000,
  },
} as const satisfies ServiceSettings

export const OFF: ServiceSettings = { breaker: { enabled: false }, budget: { enabled: false } }

export function outageJobs(address: string) {
  const call = (path: string) => async () => {
    const response = await fetch(`${address}/${path}`)
    await response.text()
    if (!response.ok) throw Object.assign(new Error(`${path} answered ${response.status}`), { status: response.status })
  }
  const retry = { attempts: 5, backoff: exponential({ initialMs: 100, factor: 3, maxMs: 3_000 }) }
  return [
    defineJob({ name: 'upload', queue: 'work', service: 'files', retry, handler: call('files') }),
    defineJob({ name: 'send', queue: 'work', service: 'mail', retry, handler: call('mail') }),
  ] as const
}
