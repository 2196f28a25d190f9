// What the ledger holds, as gauges: told by the one process of the fleet that has the duty, so that sums over all are right.
import { Gauge, type Registry } from 'prom-client'
import { BREAKER_STATES, type BreakerState } from '../domain/breaker.js'
import { LabelValues } from './label-values.js'

/** As the operator's desk reads it. */
export interface GaugeReading {
  readonly now: Date
  readonly queues: readonly ({
    readonly queue: string
    readonly paused: boolean
    readonly oldestWaitingAt: Date | null
  } & Readonly<Record<LiveState, number>>)[]
  readonly deadLetters: readonly {
    readonly queue: string
    readonly kind: string
    readonly status: string
    readonly count: number
  }[]
  readonly breakers: readonly { readonly service: string; readonly state: BreakerState }[]
  readonly workers: readonly { readonly queue: string; readonly workers: number }[]
}

const LIVE = ['waiting', 'active', 'scheduled', 'retrying', 'held'] as const
type LiveState = (typeof LIVE)[number]

/** Returns a function that sets them all to what was read; undefined: another process tells them. */
export function ledgerGauges(registry: Registry): (reading: GaugeReading | undefined) => void {
  const registers = [registry]
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Gauge({ name, help, labelNames, registers })
  const jobs = gauge('redrive_queue_jobs', 'Jobs that have not ended, by state', ['queue', 'state'])
  const oldest = gauge('redrive_queue_oldest_waiting_seconds', 'How long the first in line has waited', ['queue'])
  const letters = gauge('redrive_dead_letters', 'Dead letters', ['queue', 'kind', 'status'])
  const breakers = gauge('redrive_breaker_state', '1 for the state a breaker is in', ['service', 'state'])
  const paused = gauge('redrive_queue_paused', '1: the queue is paused', ['queue'])
  const workers = gauge('redrive_workers', 'Live workers', ['queue'])
  const all = [jobs, oldest, letters, breakers, paused, workers]

  return reading => {
    for (const each of all) each.reset()
    if (!reading) return
    const [queues, services] = [new LabelValues(), new LabelValues()]
    for (const queue of reading.queues) {
      const [label] = queues.of(queue.queue)
      for (const state of LIVE) jobs.inc({ queue: label, state }, queue[state])
      const waitedMs = queue.oldestWaitingAt === null ? 0 : reading.now.getTime() - queue.oldestWaitingAt.getTime()
      oldest.set({ queue: label }, Math.max(0, waitedMs) / 1_000)
      paused.set({ queue: label }, Number(queue.paused))
    }
    for (const { queue, kind, status, count } of reading.deadLetters) {
      letters.inc({ queue: queues.of(queue)[0], kind, status }, count)
    }
    for (const { service, state: is } of reading.breakers) {
      for (const state of BREAKER_STATES) {
        breakers.set({ service: services.of(service)[0], state }, Number(state === is))
      }
    }
    for (const { queue, workers: count } of reading.workers) workers.inc({ queue: queues.of(queue)[0] }, count)
  }
}
