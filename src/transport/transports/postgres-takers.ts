// Workers that a process hands its single jobs to without asking each time who stands by: asking costs as much as the hand-over. They are asked for on
// the side, now and then, and take turns. Whether one of them may still have a job, the hand-over itself finds out.
import type { Clock, Timer } from '../../domain/clock.js'
import type { Taker } from '../../ledger/hand-over.js'
import { PerLane } from '../per-lane.js'
import type { Lane } from '../transport.js'

/** It is worth knowing them where one hand-over follows another within so long; and so often they are asked for. */
const AGAIN_MS = 2_000
/** So long after the hand-over: at once, it would take processors from the worker that begins with the job just then. */
const LATER_MS = 10
/** Who was not asked for since then is not known any more. */
const KNOWN_MS = 6_000

interface Known {
  takers: readonly Taker[]
  /** Whose turn it is. */
  turn: number
  /** When they were told of. */
  toldAt: number
  handedAt: number
  /** They are being asked for, or will be in a moment. */
  asking: Timer | undefined
  /** How often they were forgotten: who was asked for before that is not known. */
  forgotten: number
}

export class Takers {
  readonly #clock: Clock
  readonly #ask: (lane: Lane) => Promise<readonly Taker[]>
  readonly #known = new PerLane<Known>(() => {
    const never = Number.NEGATIVE_INFINITY
    return { takers: [], turn: 0, toldAt: never, handedAt: never, asking: undefined, forgotten: 0 }
  })

  constructor(clock: Clock, ask: (lane: Lane) => Promise<readonly Taker[]>) {
    this.#clock = clock
    this.#ask = ask
  }

  /** One who stood by a moment ago. */
  of(lane: Lane): Taker | undefined {
    const known = this.#known.of(lane)
    if (known.takers.length === 0 || this.#clock.monotonic() - known.toldAt > KNOWN_MS) return undefined
    known.turn = (known.turn + 1) % known.takers.length
    return known.takers[known.turn]
  }

  /** A job was handed to a worker, known or not. */
  handed(lane: Lane): void {
    const known = this.#known.of(lane)
    const now = this.#clock.monotonic()
    const followsAnother = now - known.handedAt < AGAIN_MS
    known.handedAt = now
    if (!followsAnother || known.asking || now - known.toldAt < AGAIN_MS) return
    known.asking = this.#clock.timer(LATER_MS, () => this.#askFor(lane, known), { background: true })
  }

  /** Asks for nobody any more. */
  close(): void {
    for (const { asking } of this.#known.all()) asking?.cancel()
  }

  #askFor(lane: Lane, known: Known): void {
    const { forgotten } = known
    const told = (takers: readonly Taker[]) => {
      known.asking = undefined
      known.toldAt = this.#clock.monotonic()
      known.takers = known.forgotten === forgotten ? takers : []
    }
    this.#ask(lane).then(told, () => told([]))
  }

  /** Nobody is known until it was asked again: one of them did not stand by any more, or others wait in line. */
  forget(lane: Lane): void {
    const known = this.#known.of(lane)
    known.takers = []
    known.forgotten += 1
  }
}
