// Metrics for Prometheus: what this process did, and, where it has that duty, what the ledger holds.
import { Registry } from 'prom-client'
import { countEvents } from './counters.js'
import type { On } from './emitter.js'
import { type GaugeReading, ledgerGauges } from './ledger-gauges.js'

/** What `metrics` needs of a Redrive. */
export interface MetricsSource {
  readonly on: On
  readonly operator: { readonly gauges: { read(forMs: number): Promise<GaugeReading | undefined> } }
}

export interface Metrics {
  /** `text/plain; version=0.0.4; charset=utf-8` */
  readonly contentType: string
  /** All of it, as Prometheus reads it. What the ledger holds is left out while it does not answer. */
  text(): Promise<string>
  /** To be merged with what else your process measures: `Registry.merge([register, metrics.registry])`. */
  readonly registry: Registry
}

/** Longer than anybody waits between two looks. */
const DUTY_MS = 90_000

const known = new WeakMap<object, Metrics>()

/** The metrics of one Redrive: counted from the first call on, the same ones for all who ask. */
export function metrics(redrive: MetricsSource): Metrics {
  const made = known.get(redrive) ?? create(redrive)
  known.set(redrive, made)
  return made
}

function create(redrive: MetricsSource): Metrics {
  const registry = new Registry()
  countEvents(redrive.on, registry)
  const show = ledgerGauges(registry)
  let reading: Promise<void> | undefined
  // Several who ask at once share one look.
  const read = () => {
    reading ??= redrive.operator.gauges
      .read(DUTY_MS)
      .then(show, () => show(undefined))
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  return {
    contentType: registry.contentType,
    registry,
    async text() {
      await read()
      return registry.metrics()
    },
  }
}
