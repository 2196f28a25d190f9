// What this process does, counted from its events: for Prometheus, under the names of the contract. Never an id, a message or a
// tenant as a label.
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Events } from '../domain/event.js'
import type { JobIdentity } from '../domain/job.js'
import type { OutcomeType } from '../domain/outcome.js'
import type { On } from './emitter.js'
import { LabelValues } from './label-values.js'

const WAIT_SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600]
const DURATION_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 300]

/** Counts from now on; returns a function that stops counting. */
export function countEvents(on: On, registry: Registry): () => void {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const enqueued = counter('redrive_jobs_enqueued_total', 'Jobs enqueued by this process', ['queue', 'job'])
  const attempts = counter('redrive_job_attempts_total', 'Attempts that ended', ['queue', 'job', 'outcome'])
  const failures = counter('redrive_job_failures_total', 'Attempts that failed', ['queue', 'job', 'kind'])
  const dead = counter('redrive_jobs_dead_total', 'Jobs that became dead letters', ['queue', 'job', 'kind'])
  const rescued = counter('redrive_jobs_rescued_total', 'Jobs taken from workers that died', ['queue'])
  const redriven = counter('redrive_jobs_redriven_total', 'How redriven jobs ended', ['queue', 'result'])
  const moved = counter('redrive_breaker_transitions_total', 'Breakers that this process moved', ['service', 'to'])
  const waited = new Histogram({
    name: 'redrive_job_wait_seconds',
    help: 'From when a job could run to when it ran',
    labelNames: ['queue'],
    buckets: WAIT_SECONDS,
    registers,
  })
  const took = new Histogram({
    name: 'redrive_job_duration_seconds',
    help: 'How long attempts took',
    labelNames: ['queue', 'job'],
    buckets: DURATION_SECONDS,
    registers,
  })
  const processed = counter('worker_jobs_processed', 'Attempts that a worker ran', ['worker_id'])
  const failed = counter('worker_jobs_failed', 'Attempts that failed', ['worker_id'])
  const retried = counter('worker_job_retries', 'Jobs that will be tried again', ['worker_id'])

  const jobs = new LabelValues()
  const queues = new LabelValues()
  const services = new LabelValues()
  const workers = new LabelValues()
  const laneOf = ({ queue, name }: JobIdentity) => jobs.of(queue, name)
  const queueOf = ({ queue }: JobIdentity) => queues.of(queue)

  const ended = (event: Events['job.completed'], outcome: OutcomeType) => {
    const lane = laneOf(event.job)
    attempts.labels(...lane, outcome).inc()
    took.labels(...lane).observe(event.durationMs / 1_000)
    processed.labels(...workers.of(event.worker)).inc()
  }
  /** What failed has been counted as that: here is what ended otherwise. */
  const endedOtherwise = (event: Events['job.completed']) => {
    if (event.ran && !FAILURES.has(event.outcome)) ended(event, event.outcome)
  }

  const stops = [
    on('job.enqueued', ({ job }) => enqueued.labels(...laneOf(job)).inc()),
    on('job.started', ({ job, waitedMs }) => waited.labels(...queueOf(job)).observe(waitedMs / 1_000)),
    on('job.completed', event => {
      ended(event, 'succeeded')
      if (event.redriven) redriven.labels(...queueOf(event.job), 'recovered').inc()
    }),
    on('job.failed', event => {
      if (!event.ran) return
      ended(event, event.outcome)
      failures.labels(...laneOf(event.job), event.failure.kind).inc()
      failed.labels(...workers.of(event.worker)).inc()
    }),
    on('job.retrying', ({ worker }) => retried.labels(...workers.of(worker)).inc()),
    on('job.dead', ({ job, failure, redriven: wasRedriven }) => {
      dead.labels(...laneOf(job), failure?.kind ?? 'permanent').inc()
      if (wasRedriven) redriven.labels(...queueOf(job), 'died').inc()
    }),
    on('job.cancelled', event => {
      endedOtherwise(event)
      if (event.redriven) redriven.labels(...queueOf(event.job), 'cancelled').inc()
    }),
    on('job.returned', endedOtherwise),
    on('job.held', endedOtherwise),
    on('job.rescued', ({ job, outcome }) => {
      rescued.labels(...queueOf(job)).inc()
      if (outcome !== 'lost') return
      attempts.labels(...laneOf(job), 'lost').inc()
      failures.labels(...laneOf(job), 'lost').inc()
    }),
    on('breaker.changed', ({ service, to, shadow }) => {
      if (!shadow) moved.labels(...services.of(service), to).inc()
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

const FAILURES: ReadonlySet<OutcomeType> = new Set(['failed', 'timed_out', 'lost'])
