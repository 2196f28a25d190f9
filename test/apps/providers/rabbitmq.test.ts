// The whole story, as a process of its own runs it, over a real RabbitMQ: a provider that is missing at first, a request that
// cannot be, the dead letter that RabbitMQ itself shows, and how it is mended.
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { openStation, type Station } from '../../../apps/providers/station.js'
import { freshDatabase } from '../../support/databases.js'
import { cleanQueues, freshPrefix, rabbitmqUrl, rawRabbit } from '../../support/rabbitmq.js'
import { silent } from '../../support/runtime.js'
import { until } from '../../support/until.js'
import { follow, silentLog } from './support/scene.js'

const LONG = 120_000
const TOKEN = 'scenario-token-of-more-than-32-characters'
const PROVIDER = 'ITL.Core/ResourceGroup'
const named = z.object({ name: z.string() })
const create = (request: { name: string; location?: string }, priority = 5) => ({
  provider: 'ITL.Core',
  resourceType: 'ResourceGroup',
  operation: 'create',
  request,
  priority,
})

interface Statistics {
  readonly queueStatistics: readonly { queue_name: string; failed_count: number; waiting_count: number }[]
}

const open = new Set<Station>()
afterAll(async () => {
  for (const station of open) await station.close()
}, LONG)

it('jobs wait for their provider; a bad request shows in provider.jobs.dlq until it is mended', {
  timeout: LONG,
}, async () => {
  const url = await rabbitmqUrl()
  const { url: database = '' } = await freshDatabase('server', { migrated: false })
  const prefix = freshPrefix()
  const [line, mirror] = [`${prefix}provider.jobs`, `${prefix}provider.jobs.dlq`]
  cleanQueues(line, mirror)
  const station = await openStation({
    env: {
      AMQP_URL: url,
      DATABASE_URL: database,
      PROVIDER_AMQP_PREFIX: prefix,
      PROVIDER_RETRY_DELAYS: 'create=0.1',
      MAX_RETRY_ATTEMPTS: '1000',
      REDRIVE_TOKENS: `story:read+operate:${TOKEN}`,
    },
    log: silentLog,
    logger: silent,
    port: 0,
  })
  open.add(station)
  const { redrive, app } = station
  const { registry } = app.worker
  const next = follow(redrive)
  const desk = app.desk(redrive)
  const raw = await rawRabbit(url)
  // Looking at a queue that is not there would end the channel.
  await raw.channel.assertQueue(mirror, { durable: true })
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(station.url + path, { method, headers: { authorization: `Bearer ${TOKEN}` } })
    expect(answer.status, path).toBeLessThan(300)
    return answer
  }

  // Nobody provides it yet: the jobs are tried again and again.
  const jobs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => desk.submit(create({ name: `group-${n}`, location: 'here' }, n % 11))),
  )
  const failures = await Promise.all(jobs.map(({ id }) => next('job.retrying', id)))
  expect(new Set(failures.map(({ failure }) => failure.message))).toEqual(
    new Set([`No provider found for ${PROVIDER}`]),
  )

  // It has started: all of them complete.
  const made = new Set<string>()
  const run = (request: { name: string }) => void made.add(request.name)
  registry.register(PROVIDER, { create: { schema: named.extend({ location: z.string() }), run } })
  await Promise.all(jobs.map(({ id }) => next('job.completed', id)))
  expect(made.size).toBe(20)

  // A message of any other client is a job like the others.
  await raw.send(line, JSON.stringify(create({ name: 'foreign', location: 'there' })), { type: 'provider-operation' })
  await until('the foreign one has run', () => made.has('foreign'), LONG)

  // A request that cannot be is dead at once, and RabbitMQ itself shows it.
  const { id } = await desk.submit(create({ name: 'nowhere' }))
  expect(await next('job.dead', id)).toMatchObject({ attempt: 1, failure: { kind: 'validation' } })
  await until('RabbitMQ shows it', async () => (await raw.depth(mirror)) === 1, LONG)
  const shown = await raw.channel.get(mirror)
  if (!shown) throw new Error('The mirror is empty')
  expect(shown.properties.headers).toMatchObject({ 'redrive-id': id })
  expect(JSON.parse(shown.content.toString())).toMatchObject({ request: { name: 'nowhere' } })
  raw.channel.nack(shown, false, true)

  await until(
    'the statistics say so too',
    async () => {
      const { queueStatistics } = (await (await ask('/queue-stats')).json()) as Statistics
      const [queue] = queueStatistics.filter(({ queue_name }) => queue_name === 'provider.jobs')
      return queue?.failed_count === 1 && queue.waiting_count === 0
    },
    LONG,
  )
  const metrics = await (await ask('/metrics')).text()
  const count = (name: string) => Number(new RegExp(`^${name}\\{worker_id="[^"]+"\\} (\\d+)`, 'm').exec(metrics)?.[1])
  expect(count('worker_jobs_failed')).toBeGreaterThanOrEqual(21)
  expect(count('worker_job_retries')).toBeGreaterThanOrEqual(20)
  expect(count('worker_jobs_processed')).toBeGreaterThanOrEqual(41)

  // The provider is mended, the job resubmitted: it completes, and the queue that alerts look at is empty again.
  registry.register(
    PROVIDER,
    { create: { schema: named.extend({ location: z.string().default('here') }), run } },
    { replace: true },
  )
  await ask(`/api/queue-admin/dead-letter-queue/${id}/retry`, 'POST')
  await next('job.completed', id)
  expect(made.has('nowhere')).toBe(true)
  await until('RabbitMQ shows none', async () => (await raw.depth(mirror)) === 0, LONG)
  expect((await desk.deadLetters()).items).toEqual([])
  expect(await raw.depth(line)).toBe(0)
})
