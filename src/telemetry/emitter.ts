// Hands events to whoever listens. A listener that throws is reported as an error event and changes nothing else.
import type { Announce, EventName, Events, Listener } from '../domain/event.js'

export interface Emitter {
  readonly announce: Announce
  /** Returns a function that stops listening. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
}

export function createEmitter(): Emitter {
  const listeners = new Map<EventName, Set<Listener<never>>>()

  const announce: Announce = (name, event) => {
    const hearing = listeners.get(name)
    if (!hearing || hearing.size === 0) return
    const happened = event()
    for (const listener of [...hearing]) {
      try {
        ;(listener as Listener<typeof name>)(happened)
      } catch (error) {
        if (name !== 'error') announce('error', () => ({ where: `a listener of ${name}`, error }))
      }
    }
  }

  return {
    announce,
    on<Name extends EventName>(name: Name, listener: (event: Events[Name]) => void) {
      const hearing = listeners.get(name) ?? new Set()
      listeners.set(name, hearing)
      hearing.add(listener)
      return () => void hearing.delete(listener)
    },
  }
}
