// Which broker carries which queue, in this process. Said in the settings, or by the definitions of jobs as they are used;
// a queue has one carrier.
import { invalid, RedriveError } from '../domain/errors.js'
import type { Broker, BrokerChoice, BrokerContext, BrokerName } from './broker.js'

/** `postgres`: the ledger itself. */
export type TransportName = 'postgres' | BrokerName

export const TRANSPORT_NAMES: readonly TransportName[] = ['postgres', 'rabbitmq', 'redis']

export type BrokerChoices = { readonly [Name in BrokerName]?: BrokerChoice | undefined }

export interface Carrier {
  readonly broker: Broker
  readonly whenDown: BrokerChoice['whenDown']
}

export class Carriers {
  readonly #carriers = new Map<BrokerName, Carrier>()
  readonly #routes = new Map<string, TransportName>()
  readonly #hands = new Set<(queue: string) => number>()

  /** `routes`: queues whose transport is said in the settings. */
  constructor(choices: BrokerChoices, routes: Readonly<Record<string, TransportName>>, context: BrokerContext) {
    for (const [queue, transport] of Object.entries(routes)) this.#check(queue, transport, choices)
    for (const [queue, transport] of Object.entries(routes)) this.#routes.set(queue, transport)
    for (const choice of Object.values(choices)) {
      if (choice) this.#carriers.set(choice.name, { broker: choice.open(context), whenDown: choice.whenDown })
    }
  }

  /** A definition says what carries its queue, or nothing. */
  route(queue: string, transport: TransportName | undefined): void {
    if (transport === undefined) return
    const known = this.#routes.get(queue)
    if (known === transport) return
    if (known !== undefined) {
      throw new RedriveError(
        'SETTING_INVALID',
        `Queue ${JSON.stringify(queue)} has two transports, ${known} and ${transport}; a queue must have one`,
      )
    }
    this.#check(queue, transport, Object.fromEntries(this.#carriers))
    this.#routes.set(queue, transport)
  }

  #check(queue: string, transport: TransportName, choices: { readonly [name: string]: unknown }): void {
    if (!TRANSPORT_NAMES.includes(transport)) {
      throw invalid(`The transport of queue ${queue}`, transport, TRANSPORT_NAMES.join(', '))
    }
    if (transport !== 'postgres' && !choices[transport]) {
      const how = `openRedrive({ transports: { ${transport}: ${transport}(…) } })`
      throw invalid(`The transport of queue ${queue}`, transport, `one that is set up: ${how}`)
    }
  }

  /** What carries a queue; undefined: the ledger itself. */
  of(queue: string): Carrier | undefined {
    const transport = this.#routes.get(queue)
    return transport === undefined || transport === 'postgres' ? undefined : this.#carriers.get(transport)
  }

  get brokers(): Broker[] {
    return [...this.#carriers.values()].map(({ broker }) => broker)
  }

  /** Queues that a broker carries, as far as this process knows. */
  queuesOf(broker: BrokerName): string[] {
    return [...this.#routes].filter(([, transport]) => transport === broker).map(([queue]) => queue)
  }

  /** A worker here has so many of a queue in its hands that were not started. Returns how to forget it. */
  addHands(unstarted: (queue: string) => number): () => void {
    this.#hands.add(unstarted)
    return () => this.#hands.delete(unstarted)
  }

  /** How many wait in a queue: in the broker, and in hands here. 0 where the ledger is the carrier. */
  async depth(queue: string): Promise<number> {
    const carrier = this.of(queue)
    if (!carrier) return 0
    const inHands = [...this.#hands].reduce((sum, unstarted) => sum + unstarted(queue), 0)
    return inHands + (await carrier.broker.depth(queue))
  }

  async close(): Promise<void> {
    await Promise.all(this.brokers.map(broker => broker.close()))
  }
}
