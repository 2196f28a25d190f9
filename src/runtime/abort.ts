// The right to stop an attempt. Most handlers never look at their signal, and an AbortSignal costs more than the rest of
// a small job: it is made when it is first asked for.

export class Abort {
  #controller: AbortController | undefined
  #listener: (() => void) | undefined
  #aborted = false
  #reason: unknown

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** The first reason stands. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    this.#listener?.()
  }

  /** What `work` gives, or the abort, whichever is first: something that never returns ends all the same. */
  unless<T>(work: PromiseLike<T> | T): Promise<T> | T {
    if (!isThenable(work)) return work
    return new Promise<T>((resolve, reject) => {
      this.#listener = () => reject(this.#reason)
      if (this.#aborted) this.#listener()
      work.then(resolve, reject)
    })
  }
}

/** Not only promises of ours: query builders and other libraries' promises are awaited the same way. */
const isThenable = <T>(work: PromiseLike<T> | T): work is PromiseLike<T> =>
  typeof (work as PromiseLike<T> | undefined | null)?.then === 'function'
