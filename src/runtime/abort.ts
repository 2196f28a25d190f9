// The right to stop an attempt. Most handlers never look at their signal, and an AbortSignal costs more than the rest of
// a small job: it is made when it is first asked for.

export class Abort {
  #controller: AbortController | undefined
  #listener: { aborted(): void } | undefined
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
    this.#listener?.aborted()
  }

  /** Tells `listener` when aborted, or now if it was. There is one listener: the attempt. */
  onAbort(listener: { aborted(): void }): void {
    this.#listener = listener
    if (this.#aborted) listener.aborted()
  }
}
