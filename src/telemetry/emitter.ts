// Hands events to whoever listens. A listener that throws is reported as an error event and changes nothing else.
import type { Announce, EventName, Events, Listener } from '../domain/event.js'

export interface Emitter {
  readonly announce: Announce
  /** Returns a function that stops listening. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
}

export type On = Emitter['on']

export function createEmitter(): Emitter {
  const listeners = new Map<EventName, Set<Listener<never>>>()

  const announce: Announce = (name, event, about) => {
    const hearing = listeners.get(name)
    if (!hearing || hearing.size === 0) return
    const happened = event(about as NonNullable<typeof about>)
    const failed = (error: unknown) => {
      if (name !== 'error') announce('error', () => ({ where: `a listener of ${name}`, error }))
    }
    for (const listener of [...hearing]) {
      try {
        // An async listener is not waited for, but its rejection must not end the process either.
        const told: unknown = (listener as Listener<typeof name>)(happened)
        if (told instanceof Promise) told.catch(failed)
      } catch (error) {
        failed(error)
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
