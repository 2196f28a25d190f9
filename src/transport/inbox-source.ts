// The port of an inbox: where entries come from that others put down without knowing of Redrive.

export interface Arrival {
  /** A UUID that stays with the entry, whoever has it. */
  readonly ticket: string
  /** As it came; cut to the limit of the source. */
  readonly text: string
  /** How long it really is. */
  readonly bytes: number
  /** Somebody had it before and may have enqueued it. */
  readonly again: boolean
}

export interface InboxSource {
  /** Up to so many; waits a short time for the first. Each stays in our name until it is done. */
  take(limit: number): Promise<Arrival[]>
  done(tickets: readonly string[]): Promise<void>
  /** Ends a wait; nothing more is given. */
  interrupt(): void
  /** What is not done is anyone's. */
  close(): Promise<void>
}
