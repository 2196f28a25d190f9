// All processes of one test: started here, replaced here, and surely gone afterwards. Keeps what they told, in the order
// it was heard, and who of them has an excuse for a job that ran twice.
import { afterEach } from 'vitest'
import { Child } from './child.js'
import type { ChildConfig, News, Told, ToldOf } from './protocol.js'

const PATIENCE_MS = 60_000

export class Fleet {
  readonly told: Told[] = []
  /** Processes that were killed, frozen or cut off: what they ran may run again. */
  readonly excused = new Set<number>()
  /** Jobs whose end was told. A killed process may have ended more. */
  readonly ended = new Set<string>()
  readonly #settings: Omit<ChildConfig, 'name'>
  readonly #children = new Set<Child>()
  readonly #listeners = new Set<() => void>()
  #started = 0

  constructor(settings: Omit<ChildConfig, 'name'>) {
    this.#settings = settings
    fleets.add(this)
  }

  get children(): readonly Child[] {
    return [...this.#children]
  }

  /** Starts one and waits until it works (or, with `working: false`, until it could). */
  async start(change: Partial<ChildConfig> = {}): Promise<Child> {
    const child = this.launch(change)
    await child.hears(change.working === false ? 'opened' : 'ready')
    return child
  }

  /** Starts one and waits for nothing. */
  launch(change: Partial<ChildConfig> = {}): Child {
    this.#started += 1
    const config = { name: `worker-${this.#started}`, ...this.#settings, ...change }
    const child = new Child(config, told => {
      this.told.push(told)
      if (told.event === 'lapsed') this.excused.add(told.pid)
      if (told.event === 'settled' && told.as !== 'retry' && told.as !== 'return') this.ended.add(told.id)
      for (const listener of this.#listeners) listener()
    })
    this.#children.add(child)
    return child
  }

  async kill(child: Child): Promise<void> {
    this.excused.add(child.pid)
    this.#children.delete(child)
    await child.kill()
  }

  /** Asks one to leave, and waits until it has. It has no excuse for what runs again. */
  async dismiss(child: Child): Promise<void> {
    this.#children.delete(child)
    child.signal('SIGTERM')
    await child.ended
  }

  of<Event extends News['event']>(event: Event): ToldOf<Event>[] {
    return this.told.filter((told): told is ToldOf<Event> => told.event === event)
  }

  /** Looks again whenever anything is told. */
  until(what: string, look: () => boolean): Promise<void> {
    if (look()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const done = (error?: Error) => {
        clearTimeout(timer)
        this.#listeners.delete(listener)
        if (error) reject(error)
        else resolve()
      }
      const listener = () => look() && done()
      const timer = setTimeout(() => done(new Error(`Waited ${PATIENCE_MS} ms in vain until ${what}`)), PATIENCE_MS)
      this.#listeners.add(listener)
    })
  }

  /** Waits until so many more things were told. */
  hears(more: number): Promise<void> {
    const enough = this.told.length + more
    return this.until(`${more} more things were told`, () => this.told.length >= enough)
  }

  async end(): Promise<void> {
    await Promise.all([...this.#children].map(child => child.kill()))
    this.#children.clear()
    fleets.delete(this)
  }
}

const fleets = new Set<Fleet>()

afterEach(() => Promise.all([...fleets].map(fleet => fleet.end())))
