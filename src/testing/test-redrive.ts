// A Redrive for tests: in memory, with helpers that wait for what happens instead of sleeping.
import type { EventName, Events } from '../domain/event.js'
import { openRedrive, type RedriveOptions } from '../open-redrive.js'
import type { Redrive } from '../redrive.js'

export interface TestRedrive {
  readonly redrive: Redrive
  /** The next event of this name that matches. */
  next<Name extends EventName>(name: Name, matches?: (event: Events[Name]) => boolean): Promise<Events[Name]>
  close(): Promise<void>
}

export async function openTestRedrive(options: RedriveOptions = {}): Promise<TestRedrive> {
  const redrive = await openRedrive({ database: ':memory:', env: {}, pollMs: 100, ...options })
  return {
    redrive,
    next: (name, matches = () => true) =>
      new Promise(resolve => {
        const stop = redrive.on(name, event => {
          if (!matches(event)) return
          stop()
          resolve(event)
        })
      }),
    close: () => redrive.close({ graceMs: 0 }),
  }
}
