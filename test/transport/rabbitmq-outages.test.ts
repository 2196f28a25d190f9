// The broker goes away, the ledger goes away, a connection breaks while jobs run: what is promised then, on real servers.
import { describe, expect, it } from 'vitest'
import { defineJob, type Events } from '../../src/index.js'
import { gate } from '../support/gate.js'
import { until } from '../support/until.js'
import { openRabbitLibrary } from './support/rabbit-library.js'

const LONG = 60_000

describe('outages around RabbitMQ', { timeout: LONG }, () => {
  it('with the broker away, enqueue fails with one clear error, and works again when it is back', async () => {
    const { redrive, broker } = await openRabbitLibrary()
    const ran: number[] = []
    const mail = defineJob({ name: 'send', queue: 'mail', handler: (n: number) => void ran.push(n) })
    await redrive.work([mail]).ready
    await redrive.enqueue(mail, 1)
    await until('it has run', () => ran.length === 1, LONG)
    broker.refuse(true)
    broker.cut()
    await expect(redrive.enqueue(mail, 2)).rejects.toMatchObject({
      code: 'BROKER_UNAVAILABLE',
      details: { broker: 'rabbitmq' },
    })
    broker.refuse(false)
    await until(
      'it takes jobs again',
      () =>
        redrive.enqueue(mail, 3).then(
          () => true,
          () => false,
        ),
      LONG,
    )
    await until('the worker takes them again', () => ran.includes(3), LONG)
  })

  it('with `whenDown: park`, a job goes into the ledger and runs from there', async () => {
    const { redrive, broker } = await openRabbitLibrary({ whenDown: 'park' })
    const ran: number[] = []
    const mail = defineJob({ name: 'send', queue: 'mail', handler: (n: number) => void ran.push(n) })
    await redrive.work([mail]).ready
    await redrive.enqueue(mail, 1)
    await until('it has run', () => ran.length === 1, LONG)
    broker.refuse(true)
    broker.cut()
    const parked = await until(
      'the broken connection is noticed',
      () => redrive.enqueue(mail, 2).catch(() => undefined),
      LONG,
    )
    expect(parked.deduplicated).toBe(false)
    await until('it runs while the broker is away', () => ran.includes(2), LONG)
    broker.refuse(false)
  })

  it('with the ledger away, what succeeds goes on, and what fails waits for it', async () => {
    const { redrive, ledger, raw, queue, db } = await openRabbitLibrary({}, { leaseMs: 1_000 })
    const ran: number[] = []
    const failed: Events['job.failed'][] = []
    redrive.on('job.failed', event => failed.push(event))
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      concurrency: 4,
      retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 100 } },
      handler: async (n: number, { attempt }) => {
        ran.push(n)
        if (n < 0 && attempt === 1) throw new Error('this one fails at first')
      },
    })
    const lapsed = new Promise(resolve => redrive.on('worker.lapsed', resolve))
    await redrive.work([mail], { concurrency: 4 }).ready
    await redrive.enqueue(mail, 0)
    await until('it has run', () => ran.length === 1, LONG)
    ledger.refuse(true)
    ledger.cut()
    await lapsed
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 40 }, (_, n) => ({ payload: n % 2 ? n : -n - 1 })),
    )
    await until('all have run once, half of them in vain', () => ran.length === 41, LONG)
    expect(failed).toEqual([])
    ledger.refuse(false)
    await until('the failures are retried', () => ran.length === 61, LONG)
    await until(
      'nothing is left',
      async () => {
        const [row] = await db.query<{ n: string }>({ text: 'SELECT count(*) AS n FROM redrive.job' })
        return Number(row?.n) === 0 && (await raw.depth(queue)) === 0
      },
      LONG,
    )
    expect(failed).toHaveLength(20)
    expect(new Set(ran).size).toBe(41)
    expect(ran.filter(n => n > 0 && n % 2 === 1)).toHaveLength(20)
  })

  it('a connection that breaks while a handler runs costs no second run', async () => {
    const { redrive, broker, raw, queue, db } = await openRabbitLibrary()
    const [started, go] = [gate(), gate()]
    let runs = 0
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      handler: async () => {
        runs += 1
        started.open()
        await go.passed
      },
    })
    await redrive.work([mail]).ready
    const completed = new Promise<Events['job.completed']>(resolve => redrive.on('job.completed', resolve))
    await redrive.enqueue(mail, null)
    await started.passed
    broker.cut()
    await until(
      'the ledger knows that it runs',
      async () => {
        const [row] = await db.query<{ state: string }>({ text: 'SELECT state::text AS state FROM redrive.job' })
        return row?.state === 'active'
      },
      LONG,
    )
    await until(
      'the message that came again is gone',
      async () => {
        const { messageCount, consumerCount } = await raw.channel.checkQueue(queue)
        return messageCount === 0 && consumerCount === 1
      },
      LONG,
    )
    go.open()
    expect((await completed).attempt).toBe(1)
    expect(runs).toBe(1)
    await until(
      'it has ended in the ledger',
      async () => {
        const [row] = await db.query<{ n: string }>({ text: 'SELECT count(*) AS n FROM redrive.finished_job' })
        return Number(row?.n) === 1
      },
      LONG,
    )
  })

  it('a message that came back from a dead client is lost once, and runs from the ledger', async () => {
    const { redrive, raw, queue, another } = await openRabbitLibrary()
    const attempts: number[] = []
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      handler: (_: null, { attempt }) => void attempts.push(attempt),
    })
    const { id } = await redrive.enqueue(mail, null)
    const dying = await raw.channel.get(queue)
    expect(dying).toMatchObject({ properties: { messageId: id } })
    raw.channel.nackAll(true)
    const worker = await another()
    const rescued = new Promise<Events['job.rescued']>(resolve => worker.on('job.rescued', resolve))
    await worker.work([mail]).ready
    expect((await rescued).job.id).toBe(id)
    await until('it has run', () => attempts.length === 1, LONG)
    expect(attempts).toEqual([2])
  })

  it('a worker that leaves hands over what it had not started, and nothing counts as lost', async () => {
    const { redrive, raw, queue, db, another } = await openRabbitLibrary()
    const go = gate()
    const ran: { n: number; attempt: number; lost: number }[] = []
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      handler: async (n: number, { attempt, job }) => {
        await go.passed
        ran.push({ n, attempt, lost: job.lost })
      },
    })
    const worker = redrive.work([mail], { concurrency: 3 })
    await worker.ready
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 20 }, (_, payload) => ({ payload })),
    )
    await until('it is full', () => worker.active === 3, LONG)
    const stopped = worker.stop()
    go.open()
    await stopped
    const next = await another()
    await next.work([mail]).ready
    await until('all have run', () => ran.length >= 20, LONG)
    await until(
      'nothing is left',
      async () => {
        const [row] = await db.query<{ n: string }>({ text: 'SELECT count(*) AS n FROM redrive.job' })
        return Number(row?.n) === 0 && (await raw.depth(queue)) === 0
      },
      LONG,
    )
    expect(ran.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    expect(ran.filter(({ attempt, lost }) => attempt !== 1 || lost !== 0)).toEqual([])
  })
})
