// Looks at the health again and again, for whoever asked to be told. Off unless somebody did.
import type { Health, HealthStatus } from '../policy/health.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'

/** Told at every look. `before`: the status at the last one; undefined at the first. */
export type OnHealth = (health: Health, before: HealthStatus | undefined) => void

export interface HealthWatchOptions {
  readonly look: () => Promise<Health>
  readonly onHealth: OnHealth
  readonly intervalMs: number
}

export function healthWatch(runtime: Runtime, { look, onHealth, intervalMs }: HealthWatchOptions): Loop {
  let before: HealthStatus | undefined
  const onError = (error: unknown) => runtime.announce('error', () => ({ where: 'watching the health', error }))
  const step = async () => {
    const health = await look()
    try {
      onHealth(health, before)
    } catch (error) {
      onError(error)
    }
    before = health.status
    return intervalMs
  }
  return loop({ ...runtime, step, onError })
}
