// What a person does and sees is the same when RabbitMQ carries the jobs: pause, statistics, breakers, dead letters, and
// the queue in RabbitMQ itself that shows them.
import { describe, expect, it } from 'vitest'
import { defineJob, TransientError, ValidationError } from '../../src/index.js'
import { rabbitmq } from '../../src/transport/transports/rabbitmq.js'
import { gate } from '../support/gate.js'
import { openLibrary } from '../support/library.js'
import { cleanQueues } from '../support/rabbitmq.js'
import { until } from '../support/until.js'
import { openRabbitLibrary } from './support/rabbit-library.js'

const LONG = 60_000

describe('the desk and RabbitMQ', { timeout: LONG }, () => {
  it('open dead letters are shown in a queue of RabbitMQ, until they are redriven or closed', async () => {
    const mirror = `redrive-test-mirror-${process.pid}-${Date.now()}`
    cleanQueues(mirror)
    const { redrive, raw } = await openRabbitLibrary({ mirror })
    let broken = true
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      handler: (n: number) => {
        if (broken) throw new ValidationError(`number ${n} is not wanted`)
      },
    })
    await redrive.work([mail]).ready
    const shown = async () => (await raw.channel.assertQueue(mirror, { durable: true })).messageCount
    const [first] = await redrive.enqueueMany(
      mail,
      [1, 2, 3].map(payload => ({ payload })),
    )
    await until('all three are shown', async () => (await shown()) === 3, LONG)
    const seen = await raw.channel.get(mirror)
    expect(seen).toMatchObject({ properties: { headers: { 'redrive-name': 'send', 'redrive-kind': 'validation' } } })
    raw.channel.nackAll(true)
    const { items } = await redrive.operator.deadLetters.list()
    const closed = items.find(({ id }) => id !== first?.id)
    await redrive.operator.deadLetters.markFailed(String(closed?.id), { reason: 'not wanted' })
    await until('the one that was closed is gone', async () => (await shown()) === 2, LONG)
    broken = false
    for (const { id } of items) if (id !== closed?.id) await redrive.operator.deadLetters.retry(id)
    await until('the queue is empty again', async () => (await shown()) === 0, LONG)
    await until(
      'both have succeeded',
      async () => {
        const { items: left } = await redrive.operator.deadLetters.list({ status: 'recovered' })
        return left.length === 2
      },
      LONG,
    )
  })

  it('a paused queue starts nothing, statistics show what waits, and it goes on when it is resumed', async () => {
    const { redrive, another } = await openRabbitLibrary()
    const ran: number[] = []
    const mail = defineJob({ name: 'send', queue: 'mail', handler: (n: number) => void ran.push(n) })
    await redrive.operator.queues.pause('mail')
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 5 }, (_, payload) => ({ payload })),
    )
    await (await another()).work([mail]).ready
    const waiting = async () => {
      const all = await redrive.operator.queues.statistics()
      return all.find(({ queue }) => queue === 'mail')
    }
    await until('all five are counted', async () => (await waiting())?.waiting === 5, LONG)
    expect(ran).toEqual([])
    await redrive.operator.queues.resume('mail')
    await until('all have run', () => ran.length === 5, LONG)
    await until(
      'nothing waits',
      async () => {
        const mails = await waiting()
        return mails?.waiting === 0 && mails.active === 0 && mails.completed === 5
      },
      LONG,
    )
  })

  it('what runs when its queue is paused may end, and the rest waits in the ledger', async () => {
    const { redrive } = await openRabbitLibrary()
    const go = gate()
    let ended = 0
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      handler: async () => {
        await go.passed
        ended += 1
      },
    })
    const worker = redrive.work([mail], { concurrency: 2 })
    await worker.ready
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 6 }, () => ({ payload: null })),
    )
    await until('two run', () => worker.active === 2, LONG)
    await redrive.operator.queues.pause('mail')
    // The pause is heard of when nothing more is taken: what waits is counted, wherever it is.
    await until(
      'four wait',
      async () => {
        const all = await redrive.operator.queues.statistics()
        return all.find(({ queue }) => queue === 'mail')?.waiting === 4
      },
      LONG,
    )
    go.open()
    await redrive.operator.queues.resume('mail')
    await until('all have ended', () => ended === 6, LONG)
  })

  it('an open breaker holds jobs of its service, and they run when it closes', async () => {
    const breaker = { consecutiveFailures: 3, openMs: 300, openMaxMs: 300, probes: 1, probesToClose: 1 }
    const { redrive } = await openRabbitLibrary({}, { services: { smtp: { breaker } } })
    let down = true
    const done = new Set<number>()
    const mail = defineJob({
      name: 'send',
      queue: 'mail',
      service: 'smtp',
      retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 50 } },
      handler: (n: number) => {
        if (down) throw new TransientError('the mail server is down', { service: 'smtp' })
        done.add(n)
      },
    })
    const opened = new Promise(resolve => redrive.on('breaker.changed', event => event.to === 'open' && resolve(event)))
    await redrive.work([mail]).ready
    await redrive.enqueueMany(
      mail,
      Array.from({ length: 15 }, (_, payload) => ({ payload })),
    )
    await opened
    down = false
    await until('all have succeeded', () => done.size === 15, LONG)
    expect((await redrive.operator.deadLetters.list()).items).toEqual([])
  })

  it('a queue has one transport, and one that is set up', async () => {
    const { redrive } = await openRabbitLibrary()
    const other = defineJob({ name: 'send', queue: 'mail', transport: 'postgres' })
    await expect(redrive.enqueue(other, null)).rejects.toThrow(/two transports, rabbitmq and postgres/)
    const { redrive: plain } = await openLibrary('server')
    const job = defineJob({ name: 'send', queue: 'mail', transport: 'rabbitmq' })
    await expect(plain.enqueue(job, null)).rejects.toThrow(/one that is set up: openRedrive/)
    expect(() => defineJob({ name: 'send', transport: 'pigeon' as never })).toThrow(/postgres, rabbitmq, redis/)
    expect(() => rabbitmq({ url: 'http://user:secret@host' })).toThrow(/amqp:\/\//)
    expect(() => rabbitmq({ url: 'http://user:secret@host' })).not.toThrow(/secret/)
    expect(() => rabbitmq({ whenDown: 'maybe' as never })).toThrow(/'fail' or 'park'/)
  })
})
