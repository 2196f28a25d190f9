// Metrics as Prometheus reads them: names and labels of the contract, counted right, told once in a fleet, and of bounded number.
import { describe, expect, it } from 'vitest'
import { defineJob, openRedrive, PermanentError, type Redrive, snooze, TransientError } from '../../src/index.js'
import { LabelValues } from '../../src/telemetry/label-values.js'
import { metrics } from '../../src/telemetry/metrics.js'
import { openLibrary } from '../support/library.js'
import { silent } from '../support/runtime.js'

const TIMEOUT = { timeout: 180_000 }

type Samples = Readonly<Record<string, number>>

/** `name{label="value"}` → value. */
async function samplesOf(redrive: Redrive): Promise<Samples> {
  const text = await metrics(redrive).text()
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
}

const named = (samples: Samples, name: string) =>
  Object.fromEntries(Object.entries(samples).filter(([key]) => key.startsWith(`${name}{`)))

const CONTRACT = [
  'redrive_jobs_enqueued_total',
  'redrive_job_attempts_total',
  'redrive_job_failures_total',
  'redrive_jobs_dead_total',
  'redrive_jobs_rescued_total',
  'redrive_jobs_redriven_total',
  'redrive_breaker_transitions_total',
  'redrive_job_wait_seconds',
  'redrive_job_duration_seconds',
  'redrive_queue_jobs',
  'redrive_queue_oldest_waiting_seconds',
  'redrive_dead_letters',
  'redrive_breaker_state',
  'redrive_queue_paused',
  'redrive_workers',
  'worker_jobs_processed',
  'worker_jobs_failed',
  'worker_job_retries',
]

it('counts what a process did, under the names of the contract', TIMEOUT, async () => {
  const { redrive, next } = await openLibrary('memory', { name: 'here', leaseMs: 120_000 })
  const before = metrics(redrive)
  expect(metrics(redrive)).toBe(before)
  let heals = false
  const fine = defineJob({ name: 'fine', queue: 'm', handler: () => 1 })
  const flaky = defineJob({
    name: 'flaky',
    queue: 'm',
    retry: { attempts: 2, backoff: { type: 'immediate' }, minMs: 0 },
    handler: (_: null, { attempt }) => {
      if (attempt === 1) throw new TransientError('once')
    },
  })
  const dies = defineJob({
    name: 'dies',
    queue: 'm',
    service: 'bank',
    handler: (_: { secret: string }) => {
      if (!heals) throw new PermanentError('password=hunter2 for tenant acme')
    },
  })
  const sleeps = defineJob({
    name: 'sleeps',
    queue: 'm',
    handler: (_: null, { job }) => (job.snoozes === 0 ? snooze(1) : undefined),
  })
  redrive.work([fine, flaky, dies, sleeps], { name: 'here/1' })
  const dead = next('job.dead')
  const done = Promise.all(
    ['fine', 'flaky', 'sleeps'].map(name => next('job.completed', ({ job }) => job.name === name)),
  )
  await redrive.enqueue(fine, null)
  await redrive.enqueue(flaky, null)
  await redrive.enqueue(sleeps, null)
  const { id } = await redrive.enqueue(dies, { secret: 'x' }, { tenant: 'acme' })
  await Promise.all([dead, done])
  await redrive.operator.queues.pause('quiet')
  await redrive.operator.services.isolate('bank')
  heals = true
  await redrive.operator.services.release('bank')
  const recovered = next('job.completed', ({ job }) => job.id === id)
  await redrive.operator.deadLetters.retry(id)
  await recovered

  const samples = await samplesOf(redrive)
  const text = await before.text()
  expect([...text.matchAll(/^# TYPE (\w+) /gm)].map(match => match[1]).sort()).toEqual([...CONTRACT].sort())
  expect(named(samples, 'redrive_jobs_enqueued_total')).toEqual({
    'redrive_jobs_enqueued_total{queue="m",job="fine"}': 1,
    'redrive_jobs_enqueued_total{queue="m",job="flaky"}': 1,
    'redrive_jobs_enqueued_total{queue="m",job="sleeps"}': 1,
    'redrive_jobs_enqueued_total{queue="m",job="dies"}': 1,
  })
  expect(named(samples, 'redrive_job_attempts_total')).toEqual({
    'redrive_job_attempts_total{queue="m",job="fine",outcome="succeeded"}': 1,
    'redrive_job_attempts_total{queue="m",job="flaky",outcome="failed"}': 1,
    'redrive_job_attempts_total{queue="m",job="flaky",outcome="succeeded"}': 1,
    'redrive_job_attempts_total{queue="m",job="sleeps",outcome="snoozed"}': 1,
    'redrive_job_attempts_total{queue="m",job="sleeps",outcome="succeeded"}': 1,
    'redrive_job_attempts_total{queue="m",job="dies",outcome="failed"}': 1,
    'redrive_job_attempts_total{queue="m",job="dies",outcome="succeeded"}': 1,
  })
  expect(named(samples, 'redrive_job_failures_total')).toEqual({
    'redrive_job_failures_total{queue="m",job="flaky",kind="transient"}': 1,
    'redrive_job_failures_total{queue="m",job="dies",kind="permanent"}': 1,
  })
  expect(samples).toMatchObject({
    'redrive_jobs_dead_total{queue="m",job="dies",kind="permanent"}': 1,
    'redrive_jobs_redriven_total{queue="m",result="recovered"}': 1,
    'redrive_breaker_transitions_total{service="bank",to="isolated"}': 1,
    'redrive_job_wait_seconds_count{queue="m"}': 7,
    'redrive_job_duration_seconds_count{queue="m",job="fine"}': 1,
    'worker_jobs_processed{worker_id="here/1"}': 7,
    'worker_jobs_failed{worker_id="here/1"}': 2,
    'worker_job_retries{worker_id="here/1"}': 1,
    'redrive_queue_jobs{queue="m",state="waiting"}': 0,
    'redrive_queue_paused{queue="m"}': 0,
    'redrive_queue_paused{queue="quiet"}': 1,
    'redrive_dead_letters{queue="m",kind="permanent",status="recovered"}': 1,
    'redrive_breaker_state{service="bank",state="isolated"}': 0,
    'redrive_workers{queue="m"}': 1,
  })
  for (const never of ['hunter2', 'acme', id, 'password']) expect(text).not.toContain(never)
})

describe('what the ledger holds', () => {
  it('is told by one process of a fleet, and by another when that one has left', TIMEOUT, async () => {
    const { redrive: first, url } = await openLibrary('server')
    const second = await openRedrive({ database: url as string, env: {}, logger: silent })
    try {
      const job = defineJob({ name: 'later', queue: 'fleet' })
      await first.enqueue(job, null)
      const gauge = 'redrive_queue_jobs{queue="fleet",state="waiting"}'
      expect((await samplesOf(first))[gauge]).toBe(1)
      expect((await samplesOf(second))[gauge]).toBeUndefined()
      await first.enqueue(job, null)
      expect((await samplesOf(first))[gauge]).toBe(2)
      await first.close()
      expect((await samplesOf(second))[gauge]).toBe(2)
      expect((await samplesOf(second))['redrive_queue_oldest_waiting_seconds{queue="fleet"}']).toBeGreaterThan(0)
    } finally {
      await second.close()
    }
  })

  it('is left out while the ledger does not answer; the rest is told', TIMEOUT, async () => {
    const source = { on: () => () => {}, operator: { gauges: { read: async () => Promise.reject(new Error('away')) } } }
    const text = await metrics(source).text()
    expect(text).toContain('# TYPE redrive_queue_jobs gauge')
    expect(text).not.toMatch(/^redrive_queue_jobs/m)
  })
})

it('a name after the thousandth is counted with the others', () => {
  const values = new LabelValues(2)
  expect([values.of('a', 'x'), values.of('b', 'x'), values.of('c', 'x'), values.of('a', 'x')]).toEqual([
    ['a', 'x'],
    ['b', 'x'],
    ['other', 'other'],
    ['a', 'x'],
  ])
})
