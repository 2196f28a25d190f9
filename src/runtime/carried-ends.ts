// How carried jobs end: a success is acknowledged, any other end goes into the ledger and is acknowledged then. Where the
// connection broke, the ledger decides: a job that still runs is taken in as running, and settled by its claim there; a
// success that came too late for that is written into the history.
import { sleep } from '../domain/clock.js'
import type { Lease, SessionId } from '../domain/ids.js'
import { inPieces, MOST_TOGETHER } from '../domain/pieces.js'
import type { Settlement } from '../domain/settlement.js'
import { type Adoption, adoptRunning, park } from '../ledger/carried.js'
import { completeLate } from '../ledger/carried-late.js'
import type { BrokerConsumer, Delivery } from '../transport/broker.js'
import { storable } from '../transport/envelope.js'
import type { InHand, InHands } from './in-hands.js'
import type { Runtime } from './runtime.js'
import type { Done, Settler } from './settler.js'

export interface CarriedEndsOptions {
  readonly inHands: InHands
  readonly session: () => SessionId | undefined
  /** The session's lease holds: what is taken in as running is not rescued from us. */
  readonly safe: () => boolean
  /** Writes an end in the ledger, for as long as that takes: it comes back to `settle`. */
  readonly write: Settler['write']
  /** One succeeded that the ledger does not count. */
  readonly onCompleted: (hand: InHand) => void
  readonly onError: (error: unknown) => void
}

interface ToAcknowledge {
  readonly hand: InHand
  readonly settlement: Settlement
  readonly done: Done<Settlement>
}

type End = readonly [Settlement, InHand]

/** These bring their payloads, as one text. */
const lengthOf = ([, { job }]: End): number => job.payloadText.length

const FOR_EVER = Number.MAX_SAFE_INTEGER
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

export class CarriedEnds {
  readonly #runtime: Runtime
  readonly #options: CarriedEndsOptions
  readonly #inHands: InHands
  /** Ends that were written while another of the same batch was not: a batch is tried again whole. */
  readonly #written = new WeakMap<Settlement, boolean>()
  readonly #closed = new AbortController()
  readonly #acknowledging = new Set<Promise<unknown>>()
  #toAcknowledge: ToAcknowledge[] = []

  constructor(runtime: Runtime, options: CarriedEndsOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#inHands = options.inHands
  }

  /** A success: acknowledged, together with those that end in the same turn. */
  complete<Ended extends Settlement>(settlement: Ended, done: Done<Ended>): void {
    const hand = this.#inHands.find(settlement)
    if (!hand || hand.ended) return void done(false, settlement)
    hand.ended = true
    if (!hand.delivery || hand.adopted || hand.adopting) this.#options.write(settlement, done)
    else {
      if (this.#toAcknowledge.length === 0) this.#runtime.clock.soon(() => this.#flush())
      this.#toAcknowledge.push({ hand, settlement, done: done as Done<Settlement> })
    }
  }

  /** Writes ends in the ledger. Returns those that were refused: their jobs belong to someone else now. */
  async settle(batch: readonly Settlement[]): Promise<Settlement[]> {
    await Promise.all(batch.map(({ lease }) => this.#inHands.get(lease)?.adopting))
    const seen = new Set<Lease>()
    const adopted: End[] = []
    const late: End[] = []
    const toPark: End[] = []
    for (const settlement of batch) {
      const hand = this.#inHands.find(settlement)
      if (hand) hand.settling = true
      if (this.#written.has(settlement)) continue
      if (!hand || seen.has(settlement.lease)) this.#written.set(settlement, false)
      else if (hand.adopted) adopted.push([settlement, hand])
      else if (settlement.decision.type === 'complete') late.push([settlement, hand])
      else if (hand.delivery) toPark.push([settlement, hand])
      else this.#written.set(settlement, false)
      seen.add(settlement.lease)
    }
    if (adopted.length > 0) await this.#settleAdopted(adopted)
    for (const some of inPieces(late, lengthOf, MOST_TOGETHER)) await this.#completeLate(some)
    for (const some of inPieces(toPark, lengthOf, MOST_TOGETHER)) await this.#park(some)
    for (const settlement of batch) this.#inHands.forget(this.#inHands.find(settlement))
    return batch.filter(settlement => this.#written.get(settlement) === false)
  }

  /** Resolves when every success has been acknowledged, or handed to the ledger, or when the signal aborts. */
  async acknowledged(signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime
    while (!signal.aborted && (this.#toAcknowledge.length > 0 || this.#acknowledging.size > 0)) {
      if (this.#toAcknowledge.length > 0) this.#flush()
      const given = new AbortController()
      await Promise.race([
        Promise.all(this.#acknowledging),
        sleep(clock, FOR_EVER, AbortSignal.any([signal, given.signal])),
      ])
      given.abort()
    }
  }

  /** Gives up telling the ledger what runs here. */
  close(): void {
    this.#closed.abort()
  }

  /** The right to these is gone and they run on: the ledger is told, so that nobody else runs them. */
  adopt(hands: readonly InHand[]): void {
    const adopting = this.#adoptAll(hands)
    for (const hand of hands) hand.adopting = adopting
  }

  async #adoptAll(hands: readonly InHand[]): Promise<void> {
    const { clock, random } = this.#runtime
    const { session, safe, onError } = this.#options
    for (
      let pauseMs = FIRST_PAUSE_MS;
      !this.#closed.signal.aborted;
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    ) {
      const waiting = hands.filter(({ lease }) => this.#inHands.get(lease) !== undefined)
      if (waiting.length === 0) break
      try {
        // On a session that may have ended they would be rescued from us: it is revived, or there is a new one soon.
        if (safe() && (await this.#adoptOnce(session() as SessionId, waiting))) break
      } catch (error) {
        onError(error)
      }
      await sleep(clock, pauseMs * (0.5 + random() / 2), this.#closed.signal)
    }
    for (const hand of hands) delete hand.adopting
  }

  async #adoptOnce(session: SessionId, hands: readonly InHand[]): Promise<true> {
    for (const some of inPieces(hands, ({ job }) => job.payloadText.length, MOST_TOGETHER)) {
      const adoptions = some.map(hand => this.#adoption(hand))
      const adopted = await adoptRunning(this.#runtime.db, session, adoptions)
      for (const hand of some) {
        const lease = adopted.get(hand.job.id)
        if (lease !== undefined) hand.adopted = lease
      }
    }
    return true
  }

  #flush(): void {
    const batch = this.#toAcknowledge
    this.#toAcknowledge = []
    const byConsumer = new Map<BrokerConsumer, ToAcknowledge[]>()
    for (const item of batch) {
      const { consumer } = item.hand
      const items = byConsumer.get(consumer)
      if (items) items.push(item)
      else byConsumer.set(consumer, [item])
    }
    for (const [consumer, items] of byConsumer) this.#track(this.#acknowledge(consumer, items))
  }

  async #acknowledge(consumer: BrokerConsumer, items: readonly ToAcknowledge[]): Promise<void> {
    const sent = items.filter(({ hand }) => hand.delivery !== undefined)
    for (const { hand } of items) this.#inHands.remember(hand.job.id)
    const lost = new Set(
      sent.length === 0 ? [] : await consumer.acknowledge(sent.map(({ hand }) => hand.delivery as Delivery)),
    )
    for (const { hand, settlement, done } of items) {
      if (hand.delivery !== undefined && !lost.has(hand.delivery)) {
        this.#options.onCompleted(hand)
        this.#inHands.forget(hand)
        done(true, settlement)
      } else {
        // Perhaps it counted, perhaps not: the ledger is told, so that nobody runs it again.
        this.#inHands.lose(hand)
        this.#options.write(settlement, done)
      }
    }
  }

  #track(work: Promise<unknown>): void {
    const tracked = work.catch(this.#options.onError).finally(() => this.#acknowledging.delete(tracked))
    this.#acknowledging.add(tracked)
  }

  async #settleAdopted(ends: readonly End[]): Promise<void> {
    const { transport } = this.#runtime
    const theirs = ends.map(([settlement, hand]) => {
      const { receipt: _, ...end } = settlement
      return { ...end, lease: hand.adopted as Lease }
    })
    const by = { session: this.#options.session() as SessionId, lane: 0 }
    const refused = new Set(await transport.settle(theirs, by))
    for (const [index, [settlement]] of ends.entries()) {
      this.#written.set(settlement, !refused.has(theirs[index] as Settlement))
    }
  }

  async #completeLate(ends: readonly End[]): Promise<void> {
    for (const [, hand] of ends) this.#inHands.remember(hand.job.id)
    const batch = ends.map(([{ decision }, hand]) => ({
      job: this.#adoption(hand),
      result: decision.type === 'complete' ? decision.result : null,
    }))
    const written = await completeLate(this.#runtime.db, batch)
    for (const [settlement, hand] of ends) {
      const ours = written.has(hand.job.id)
      this.#written.set(settlement, ours)
      if (ours) this.#options.onCompleted(hand)
    }
  }

  async #park(ends: readonly End[]): Promise<void> {
    const { db, transport } = this.#runtime
    const batch = ends.map(([{ outcome, decision }, hand]) => ({ job: this.#adoption(hand), outcome, decision }))
    const refused = new Set(await park(db, this.#options.session() as SessionId, batch))
    for (const [index, [settlement, hand]] of ends.entries()) {
      this.#written.set(settlement, !refused.has(batch[index] as (typeof batch)[number]))
      // One that is refused is in the ledger as well: there is nothing left to do for its message.
      if (hand.delivery) this.#track(hand.consumer.acknowledge([hand.delivery]))
    }
    for (const queue of new Set(ends.map(([, hand]) => hand.queue))) transport.wake(queue)
  }

  #adoption({ job, service, arrivedAt }: InHand): Adoption {
    return {
      ...job,
      payloadText: storable(job.payloadText).payloadText,
      service: job.service ?? service,
      heldForMs: Math.max(0, this.#runtime.clock.monotonic() - arrivedAt),
    }
  }
}
