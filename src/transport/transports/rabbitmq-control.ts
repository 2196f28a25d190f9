// A channel for questions and rare work, opened when somebody asks. One at a time; every call has a limit.
import type { ConfirmChannel } from 'amqplib'
import type { Clock } from '../../domain/clock.js'
import { brokerUnavailable } from '../broker.js'
import type { Link } from './rabbitmq-link.js'
import { type QueueForm, queueName } from './rabbitmq-queues.js'

const LIMIT_MS = 15_000
const NOT_FOUND = 404

export class Control {
  readonly #link: Link
  readonly #clock: Clock
  #channel: ConfirmChannel | undefined
  #busy: Promise<unknown> = Promise.resolve()

  constructor(link: Link, clock: Clock) {
    this.#link = link
    this.#clock = clock
  }

  /** How many messages wait in a queue; 0 if it is not there. */
  depth(form: QueueForm, queue: string): Promise<number> {
    return this.use(async channel => {
      try {
        return (await channel.checkQueue(queueName(form, queue))).messageCount
      } catch (error) {
        if ((error as { code?: unknown }).code === NOT_FOUND) return 0
        throw error
      }
    })
  }

  /** Gives `work` the channel alone. If it takes too long the channel is closed under it. */
  use<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
    const run = this.#busy.then(() => this.#run(work))
    this.#busy = run.catch(() => {})
    return run
  }

  async #run<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
    const { model } = this.#link
    if (!model) throw brokerUnavailable('rabbitmq', 'is away', 'none')
    let late: (error: unknown) => void = () => {}
    const limit = new Promise<never>((_, reject) => {
      late = reject
    })
    let isLate = false
    const timer = this.#clock.timer(LIMIT_MS, () => {
      isLate = true
      this.#discard()
      late(brokerUnavailable('rabbitmq', `did not answer within ${LIMIT_MS} ms`, 'unknown'))
    })
    const answer = async () => {
      if (!this.#channel) {
        const channel = await model.createConfirmChannel()
        if (isLate) return channel.close() as Promise<never>
        channel.on('error', () => {}) // whoever asked hears of it
        channel.on('close', () => {
          if (this.#channel === channel) this.#channel = undefined
        })
        this.#channel = channel
      }
      return work(this.#channel)
    }
    try {
      return await Promise.race([answer(), limit])
    } catch (error) {
      this.#discard()
      throw error
    } finally {
      timer.cancel()
    }
  }

  /** With the channel goes back whatever was got on it. */
  #discard(): void {
    this.#channel?.close().catch(() => {})
    this.#channel = undefined
  }
}
