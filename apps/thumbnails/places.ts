// So many at once and no more: decoding fills a processor, while reading from storage leaves it idle.
export class Places {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Performs it when there is a place; one that is aborted while it waits never starts. */
  async within<T>(signal: AbortSignal, perform: () => Promise<T>): Promise<T> {
    await this.#take()
    try {
      signal.throwIfAborted()
      return await perform()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }

  async #take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
  }
}
