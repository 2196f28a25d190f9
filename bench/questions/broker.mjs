// What does Redrive add to a broker while all goes well? The same number of jobs, published a thousand at a time and then
// worked off by a no-op, through the bare client and through Redrive on the same server. The bare client does what the
// transport does: durable queue, persistent messages, confirms; acknowledgement of each message.
//
// RabbitMQ is that of REDRIVE_TEST_RABBITMQ, else the local one; without it these have no figures.
import amqp from 'amqplib'
import { Redis } from 'ioredis'
import { defineJob, openRedrive } from '../../dist/index.js'
import { redis as carriedByRedis } from '../../dist/redis.js'
import { rabbitmq } from '../../dist/transport/transports/rabbitmq.js'
import { Absent } from '../harness/arena.mjs'
import { now } from '../harness/clock.mjs'
import { atLeast } from '../harness/verdict.mjs'

const JOBS = 20_000
const BATCH = 1_000
const CONCURRENCY = 100
const PREFETCH = 300
const PAYLOAD = { to: 'someone@example.com', text: 'x'.repeat(60) }
const URL = process.env.REDRIVE_TEST_RABBITMQ || 'amqp://127.0.0.1:5672'

/** @param {number} publishedMs @param {number} workedMs */
const figures = (publishedMs, workedMs) => ({
  published: (JOBS / publishedMs) * 1000,
  worked: (JOBS / workedMs) * 1000,
})

const fresh = () => `redrive-bench-${process.pid}-${Math.round(now())}`

async function connect() {
  return amqp.connect(URL, { noDelay: true }).catch(error => {
    throw new Absent(`no RabbitMQ: ${error.message}`)
  })
}

async function bareRabbitmq() {
  const connection = await connect()
  const channel = await connection.createConfirmChannel()
  const queue = fresh()
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-max-priority': 10 } })
  const startedAt = now()
  for (let sent = 0; sent < JOBS; sent += BATCH) {
    for (let n = 0; n < BATCH; n += 1) {
      const options = { persistent: true, priority: 5, headers: { 'redrive-name': 'task' } }
      channel.sendToQueue(queue, Buffer.from(JSON.stringify(PAYLOAD)), options)
    }
    await channel.waitForConfirms()
  }
  const publishedAt = now()
  const taking = await connection.createChannel()
  await taking.prefetch(PREFETCH)
  await new Promise(resolve => {
    let left = JOBS
    void taking.consume(queue, message => {
      if (!message) return
      JSON.parse(message.content.toString())
      taking.ack(message)
      left -= 1
      if (left === 0) resolve(undefined)
    })
  })
  await taking.close()
  const endedAt = now()
  await channel.deleteQueue(queue)
  await connection.close()
  return figures(publishedAt - startedAt, endedAt - publishedAt)
}

async function bareRedis({ redis }) {
  if ('missing' in redis) throw new Absent(redis.missing)
  const client = new Redis(await redis.create())
  const stream = fresh()
  await client.xgroup('CREATE', stream, 'g', '0', 'MKSTREAM')
  const startedAt = now()
  for (let sent = 0; sent < JOBS; sent += BATCH) {
    const pipeline = client.pipeline()
    for (let n = 0; n < BATCH; n += 1) {
      pipeline.xadd(stream, '*', 'redrive-name', 'task', 'body', JSON.stringify(PAYLOAD))
    }
    await pipeline.exec()
  }
  const publishedAt = now()
  for (let left = JOBS; left > 0; ) {
    const answer = await client.xreadgroup('GROUP', 'g', 'me', 'COUNT', PREFETCH, 'STREAMS', stream, '>')
    const entries = answer?.[0]?.[1] ?? []
    const ids = entries.map(([id, fields]) => {
      JSON.parse(fields[3])
      return id
    })
    await client
      .pipeline()
      .xack(stream, 'g', ...ids)
      .xdel(stream, ...ids)
      .exec()
    left -= ids.length
  }
  const endedAt = now()
  await client.del(stream)
  client.disconnect()
  return figures(publishedAt - startedAt, endedAt - publishedAt)
}

/** @param {any} servers @param {string} transport @param {object} transports */
async function throughRedrive({ postgres }, transport, transports) {
  const database = await postgres.create()
  const redrive = await openRedrive({ database, transports, queues: { bench: { transport } } })
  try {
    let left = JOBS
    let done = () => {}
    const all = new Promise(resolve => {
      done = () => resolve(undefined)
    })
    redrive.on('job.completed', () => {
      left -= 1
      if (left === 0) done()
    })
    const task = defineJob({ name: 'task', queue: 'bench', handler: () => {} })
    const items = Array.from({ length: BATCH }, () => ({ payload: PAYLOAD }))
    const startedAt = now()
    for (let sent = 0; sent < JOBS; sent += BATCH) await redrive.enqueueMany(task, items)
    const publishedAt = now()
    redrive.work([task], { concurrency: CONCURRENCY })
    await all
    return figures(publishedAt - startedAt, now() - publishedAt)
  } finally {
    await redrive.close({ graceMs: 1_000 })
    await postgres.drop(database)
  }
}

async function redriveOnRabbitmq(servers) {
  const connection = await connect()
  const prefix = `${fresh()}.`
  try {
    return await throughRedrive(servers, 'rabbitmq', { rabbitmq: rabbitmq({ url: URL, prefix }) })
  } finally {
    await (await connection.createChannel()).deleteQueue(`${prefix}bench`)
    await connection.close()
  }
}

async function redriveOnRedis(servers) {
  if ('missing' in servers.redis) throw new Absent(servers.redis.missing)
  const url = await servers.redis.create()
  return throughRedrive(servers, 'redis', { redis: carriedByRedis({ url, prefix: `${fresh()}:` }) })
}

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'broker',
  title: 'Brokers: 20,000 jobs of 100 B published and worked off, through the bare client and through Redrive',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'worked', label: 'worked off/s' },
    { key: 'published', label: 'published/s' },
  ],
  entrants: () => [
    { key: 'amqplib', label: 'amqplib alone', measure: bareRabbitmq },
    { key: 'redrive-rabbitmq', label: 'redrive on RabbitMQ', measure: redriveOnRabbitmq },
    { key: 'ioredis', label: 'ioredis alone (one stream)', measure: bareRedis },
    { key: 'redrive-redis', label: 'redrive on Redis', measure: redriveOnRedis },
  ],
  verdicts: medians =>
    [
      ['rabbitmq', 'amqplib'],
      ['redis', 'ioredis'],
    ].flatMap(([broker, client]) =>
      ['published', 'worked'].map(column =>
        atLeast(
          `${broker}, ${column}: ≥ 0.7 × ${client} alone`,
          medians(`redrive-${broker}`, column),
          { label: client, value: medians(client, column) },
          0.7,
        ),
      ),
    ),
}
