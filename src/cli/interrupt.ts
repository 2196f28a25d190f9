// Ctrl-C. The first asks the command to end where it can; a second one ends it at once. Nothing is listened for until a
// command asks, so that those with a shutdown of their own (serve, work) have the signals to themselves.
import { EXIT } from './exit.js'

export interface Signals {
  on(name: 'SIGINT', listener: () => void): unknown
  exit(code: number): never
}

export function interruption(signals: Signals): () => AbortSignal {
  let controller: AbortController | undefined
  return () => {
    if (controller) return controller.signal
    const asked = new AbortController()
    controller = asked
    signals.on('SIGINT', () => {
      if (asked.signal.aborted) signals.exit(EXIT.interrupted)
      asked.abort()
    })
    return asked.signal
  }
}
