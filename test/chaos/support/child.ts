// One chaos process, seen from its test: what it told so far, what it will tell, and the signals it gets.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { ChildConfig, Command, News, Told, ToldOf } from './protocol.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url))
const PATIENCE_MS = 60_000
const STDERR_CHARS = 2_000

interface Waiting {
  readonly look: () => boolean
  readonly give: (error?: Error) => void
}

export class Child {
  readonly name: string
  readonly pid: number
  readonly told: Told[] = []
  /** When its last word was heard: how it ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #waiting = new Set<Waiting>()
  #stderr = ''

  constructor(config: ChildConfig, onTold: (told: Told) => void) {
    this.name = config.name
    // Compiled quickly, as for tests (vitest.config.ts): one that is killed soon has no use for more.
    const quickly = ['--liftoff-only', '--import', 'tsx']
    this.#process = spawn(process.execPath, [...quickly, WORKER, JSON.stringify(config)], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.pid = this.#process.pid as number
    this.#process.stdin.on('error', () => {}) // it may be dead by the time it is spoken to
    this.#process.stderr.on('data', text => {
      this.#stderr = `${this.#stderr}${text}`.slice(-STDERR_CHARS)
    })
    const lines = createInterface({ input: this.#process.stdout })
    lines.on('line', line => {
      const told = JSON.parse(line) as Told
      this.told.push(told)
      onTold(told)
      for (const { look, give } of [...this.#waiting]) if (look()) give()
    })
    this.ended = Promise.all([once(this.#process, 'close'), once(lines, 'close')]).then(([[code, signal]]) => {
      for (const { give } of [...this.#waiting]) give(new Error(this.#story(`it ended (${code ?? signal})`)))
      return { code, signal }
    })
  }

  /** The first news, past or to come, of this event that match. */
  async hears<Event extends News['event']>(
    event: Event,
    matches: (told: ToldOf<Event>) => boolean = () => true,
  ): Promise<ToldOf<Event>> {
    const found = () =>
      this.told.find((told): told is ToldOf<Event> => told.event === event && matches(told as ToldOf<Event>))
    await this.until(`it told "${event}"`, () => found() !== undefined)
    return found() as ToldOf<Event>
  }

  /** Looks again after each thing it tells; fails when it ends without, or takes too long. */
  until(what: string, look: () => boolean): Promise<void> {
    if (look()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const give = (error?: Error) => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
        if (error) reject(error)
        else resolve()
      }
      const waiting = { look, give }
      const timer = setTimeout(
        () => give(new Error(this.#story(`in ${PATIENCE_MS} ms not until ${what}`))),
        PATIENCE_MS,
      )
      this.#waiting.add(waiting)
    })
  }

  say(command: Command): void {
    this.#process.stdin.write(`${JSON.stringify(command)}\n`)
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** kill -9; resolves when it is dead and its last word heard. */
  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }

  #story(what: string): string {
    const last = this.told.slice(-5).map(told => JSON.stringify(told))
    return [`Process ${this.name} (${this.pid}): ${what}. Its last words:`, ...last, this.#stderr].join('\n')
  }
}
