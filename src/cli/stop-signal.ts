// When a long-running command ends: at the first signal it lets running jobs finish; a second Ctrl-C ends it at once.
import type { Clock } from '../domain/clock.js'
import { EXIT } from './exit.js'
import type { Stream } from './output.js'

/** npm and a closing terminal repeat a signal: what comes right after the first is not a second wish. */
const SAME_SIGNAL_MS = 250

export interface Signals {
  on(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP', listener: () => void): unknown
  exit(code: number): never
}

/** Aborts at the first signal to stop. `atOnce`: called before the process ends at a second Ctrl-C. */
export function stopSignal(
  { clock, stderr, signals = process }: { clock: Clock; stderr: Stream; signals?: Signals },
  atOnce: () => void = () => {},
): AbortSignal {
  const stop = new AbortController()
  let askedAt = 0
  const ask = () => {
    if (!stop.signal.aborted) askedAt = clock.monotonic()
    stop.abort()
  }
  signals.on('SIGINT', () => {
    if (stop.signal.aborted && clock.monotonic() - askedAt > SAME_SIGNAL_MS) {
      atOnce()
      stderr.write('redrive: stopped at once; what was running is rescued when its lease has lapsed\n')
      signals.exit(EXIT.interrupted)
    }
    ask()
  })
  signals.on('SIGTERM', ask)
  signals.on('SIGHUP', ask)
  return stop.signal
}

/** Resolves when it aborts. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
