// How far a long thumbnail is, told every other second. A short one ends before there is anything to tell, and costs the
// ledger nothing.
import type { HandlerContext } from 'redrive'

const EVERY_MS = 2_000

export class ProgressReport {
  #look: () => Record<string, string | number> = () => ({ step: 'reading' })
  readonly #timer: NodeJS.Timeout

  constructor(progress: HandlerContext['progress'], everyMs = EVERY_MS) {
    // Progress that could not be saved is no failure of the job.
    this.#timer = setInterval(() => void progress(this.#look()).catch(() => {}), everyMs)
  }

  /** From now on this is told. */
  follow(look: () => Record<string, string | number>): void {
    this.#look = look
  }

  end(): void {
    clearInterval(this.#timer)
  }
}
