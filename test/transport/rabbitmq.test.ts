// Jobs on RabbitMQ through the library, from enqueue to their ends, on a real server with a real ledger.
import { describe, expect, it } from 'vitest'
import { bury, defineJob, snooze } from '../../src/index.js'
import { rabbitmq } from '../../src/transport/transports/rabbitmq.js'
import { openLibrary } from '../support/library.js'
import { cleanQueues, freshPrefix, rabbitmqUrl, rawRabbit } from '../support/rabbitmq.js'
import { until } from '../support/until.js'

const LONG = 60_000

async function open(options: Parameters<typeof rabbitmq>[0] = {}) {
  const url = await rabbitmqUrl()
  const prefix = freshPrefix()
  const library = await openLibrary('server', {
    poolSize: 4,
    transports: { rabbitmq: rabbitmq({ url, prefix, ...options }) },
  })
  cleanQueues(`${prefix}mail`)
  return { ...library, prefix, raw: await rawRabbit(url) }
}

const rows = async (db: Awaited<ReturnType<typeof open>>['db'], table: string) =>
  Number((await db.query<{ n: string }>({ text: `SELECT count(*) AS n FROM redrive.${table}` }))[0]?.n)

describe('jobs on RabbitMQ', { timeout: LONG }, () => {
  it('a success leaves no row in the ledger, and is counted', async () => {
    const { redrive, db } = await open()
    const seen: number[] = []
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      transport: 'rabbitmq',
      handler: async (payload: { n: number }) => void seen.push(payload.n),
    })
    const worker = redrive.work([mail])
    await worker.ready
    for (let n = 0; n < 20; n += 1) await redrive.enqueue(mail, { n })
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 30 }, (_, n) => ({ payload: { n: 20 + n } })),
    )
    await until('all have run', () => seen.length === 50, LONG)
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n))
    expect(await rows(db, 'job')).toBe(0)
    expect(await rows(db, 'finished_job')).toBe(0)
    await until('the successes are counted', async () => {
      const [mails] = (await redrive.operator.queues.statistics()).filter(({ queue }) => queue === 'mail')
      return mails?.completed === 50
    })
  })

  it('a failure is retried from the ledger, and its dead letter is the same as any', async () => {
    const { redrive, next } = await open()
    const runs = new Map<string, number>()
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      transport: 'rabbitmq',
      retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 10 }, jitter: false },
      handler: async (payload: { to: string }, { attempt, job }) => {
        runs.set(payload.to, attempt)
        if (payload.to === 'heals' && attempt < 3) throw new Error('not yet')
        if (payload.to === 'never') throw new Error('it does not answer')
        if (payload.to === 'later' && job.snoozes === 0) return snooze(20)
        if (payload.to === 'buried') return bury('nobody wants it')
        return undefined
      },
    })
    const worker = redrive.work([mail])
    await worker.ready
    const dead = next('job.dead', event => event.attempt === 3)
    const healed = next('job.completed', event => event.attempt === 3)
    const snoozed = next('job.completed', event => event.attempt === 1)
    const buried = next('job.dead', event => event.attempt === 1)
    await redrive.enqueue(mail, { to: 'heals' })
    const { id } = await redrive.enqueue(mail, { to: 'never' }, { tenant: 'acme' })
    await redrive.enqueue(mail, { to: 'later' })
    await redrive.enqueue(mail, { to: 'buried' })
    await Promise.all([dead, healed, snoozed, buried])
    const letter = await redrive.operator.deadLetters.get(id)
    expect(letter).toMatchObject({ queue: 'mail', name: 'send', totalAttempts: 3, tenant: 'acme' })
  })
})
