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
    if (hearing !== undefined && hearing.size > 0) tell(hearing, name, event, about)
  }

  // Apart: what it remembers would else be put aside for each event that nobody hears, two for every job.
  const tell = <Name extends EventName, About>(
    hearing: ReadonlySet<Listener<never>>,
    name: Name,
    event: (about: NonNullable<About>) => Events[Name],
    about: About,
  ) => {
    const happened = event(about as NonNullable<About>)
    const failed = (error: unknown) => {
      if (name !== 'error') announce('error', () => ({ where: `a listener of ${name}`, error }))
    }
    for (const listener of [...hearing]) {
      try {
        // An async listener is not waited for, but its rejection must not end the process either.
        const told: unknown = (listener as Listener<Name>)(happened)
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
