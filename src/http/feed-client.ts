// One who listens: a stream with a bounded queue. Whoever does not read what is told is dropped, so that nobody's silence costs
// memory; whoever may not listen any more is sent away at the next heartbeat.
import { type Frame, HEARTBEAT } from './feed-frame.js'

export interface Listening {
  readonly token: string
  /** Sees payloads and messages as they are. */
  readonly seesAll: boolean
  readonly lastEventId: string | null
  /** Cuts the connection; undefined where the server gives no way to. */
  readonly cut: (() => void) | undefined
  /** Nobody is at the other end any more, and the server knows it. */
  readonly isGone: () => boolean
  /** Whether the token still opens this. */
  readonly stillMay: () => Promise<boolean>
}

export class FeedClient {
  readonly token: string
  readonly stream: ReadableStream<Uint8Array>
  /** It has been told where it stands. */
  greeted = false
  readonly #listening: Listening
  readonly #bufferBytes: number
  readonly #onGone: (client: FeedClient) => void
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(listening: Listening, bufferBytes: number, onGone: (client: FeedClient) => void) {
    this.token = listening.token
    this.#listening = listening
    this.#bufferBytes = bufferBytes
    this.#onGone = onGone
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: controller => {
          this.#controller = controller
        },
        cancel: () => this.#gone(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }),
    )
  }

  push(frame: Frame): void {
    this.greeted = true
    this.#write(this.#listening.seesAll ? frame.whole : frame.redacted)
  }

  beat(): void {
    if (this.#listening.isGone()) this.end()
    this.#write(HEARTBEAT)
    // A ledger that does not answer takes nobody's right away.
    this.#listening.stillMay().then(
      may => may || this.end(),
      () => {},
    )
  }

  /** Ends it as a stream ends; one that still has something to read is cut. */
  end(): void {
    const controller = this.#controller
    if (!controller) return
    const unread = (controller.desiredSize ?? 0) < this.#bufferBytes
    this.#gone()
    controller.close()
    if (unread) this.#listening.cut?.()
  }

  #write(bytes: Uint8Array): void {
    const controller = this.#controller
    if (!controller) return
    if ((controller.desiredSize ?? 0) > 0) controller.enqueue(bytes)
    else this.#drop(controller)
  }

  #drop(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#gone()
    if (this.#listening.cut) this.#listening.cut()
    else controller.error(new Error('The client stopped reading'))
  }

  #gone(): void {
    if (!this.#controller) return
    this.#controller = undefined
    this.#onGone(this)
  }
}
