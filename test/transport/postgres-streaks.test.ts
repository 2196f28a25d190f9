// Jobs that are put in line one after the other. Seen to fail: with the timer set before the insert, what is put in line while it
// fires is told to nobody; without `end`, what a process put in line last waits for a poll.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newJobId } from '../../src/domain/ids.js'
import type { NewJob } from '../../src/domain/job.js'
import { defineJob, openRedrive } from '../../src/index.js'
import { wakeChannel } from '../../src/ledger/wake-channel.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { Streaks } from '../../src/transport/transports/postgres-streaks.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { aSession, take } from '../support/story.js'
import { until } from '../support/until.js'

const LANE = { queue: 'mail', name: 'send' }
const OTHER = { queue: 'mail', name: 'other' }

describe('a streak', () => {
  function streaks() {
    const clock = manualClock()
    const woken: string[] = []
    const all = new Streaks(clock, async queue => void woken.push(queue))
    return { clock, woken, all }
  }

  it('begins where others wait, and lasts longer each time that they still do', async () => {
    const { clock, all } = streaks()
    expect(all.lasts(LANE)).toBe(false)
    for (const lastsMs of [10, 20, 40, 80, 100, 100]) {
      all.asked(LANE, true)
      await clock.advance(lastsMs - 1)
      expect(all.lasts(LANE)).toBe(true)
      expect(all.lasts(OTHER)).toBe(false)
      await clock.advance(1)
      expect(all.lasts(LANE)).toBe(false)
    }
    all.asked(LANE, false)
    expect(all.lasts(LANE)).toBe(false)
    all.asked(LANE, true)
    await clock.advance(10)
    expect(all.lasts(LANE)).toBe(false)
  })

  it('ends with one wake-up for all that was put in line, and with none if nothing was', async () => {
    const { clock, woken, all } = streaks()
    all.asked(LANE, true)
    all.wasPut(LANE)
    all.wasPut(LANE)
    await clock.advance(34)
    expect(woken).toEqual([])
    await clock.advance(1)
    expect(woken).toEqual(['mail'])
    all.asked(LANE, true)
    await clock.advance(200)
    expect(woken).toEqual(['mail'])
    expect(clock.pending).toBe(0)
  })

  it('wakes nobody while it goes on', async () => {
    const { clock, woken, all } = streaks()
    for (let nth = 0; nth < 20; nth += 1) {
      all.asked(LANE, true)
      all.wasPut(LANE)
      await clock.advance(nth < 10 ? 9 : 110)
    }
    expect(woken).toEqual([])
    await clock.advance(25)
    expect(woken).toEqual(['mail'])
    expect(clock.pending).toBe(0)
  })

  it('wakes after what came in late', async () => {
    const { clock, woken, all } = streaks()
    all.asked(LANE, true)
    await clock.advance(50)
    expect(woken).toEqual([])
    all.wasPut(LANE)
    await clock.advance(0)
    expect(woken).toEqual(['mail'])
  })

  it('is told of at once when all is over', async () => {
    const { clock, woken, all } = streaks()
    all.asked(LANE, true)
    all.wasPut(LANE)
    await all.end()
    expect(woken).toEqual(['mail'])
    expect(clock.pending).toBe(0)
  })
})

describe('on a server', () => {
  const aJob = (options: Partial<NewJob> = {}): NewJob => {
    return { ...LANE, id: newJobId(), priority: 5, payloadText: '{"to":"ada"}', ...options }
  }
  async function aLine() {
    const { db, url } = await freshDatabase('server')
    const clock = manualClock()
    const transport = postgresTransport(db, clock)
    const listener = new pg.Client({ connectionString: url })
    await listener.connect()
    onTestFinished(() => listener.end())
    const heard: (string | undefined)[] = []
    listener.on('notification', ({ payload }) => heard.push(payload))
    await listener.query(`LISTEN ${wakeChannel(db)}`)
    return { db, clock, transport, heard }
  }

  it('jobs keep their order and all they have, and a worker that fell asleep meanwhile is woken', async () => {
    const { db, clock, transport, heard } = await aLine()
    const jobs = [
      aJob(),
      aJob(),
      aJob({ service: 'smtp', maxAttempts: 7 }),
      aJob({ priority: 9 }),
      aJob({ tenant: 'a' }),
    ]
    const payloadText = JSON.stringify('x'.repeat(5_000))
    jobs.push(aJob({ payloadText }))
    for (const job of jobs.slice(0, 2)) await transport.publish([job])
    await until('the first was announced', async () => heard.length === 1)
    const session = await aSession(db)
    expect(await take(db, session, 10)).toHaveLength(2)
    // Nobody waits any more, and we do not know.
    for (const job of jobs.slice(2)) await transport.publish([job])
    expect(heard).toHaveLength(1)
    await clock.advance(125)
    await until('those were announced', async () => heard.length === 2)
    const taken = await take(db, session, 10)
    expect(taken.map(({ id }) => id)).toEqual([jobs[3], jobs[2], jobs[4], jobs[5]].map(job => job?.id))
    expect(taken[0]).toMatchObject({ priority: 9, attempt: 1 })
    expect(taken[1]).toMatchObject({ service: 'smtp', maxAttempts: 7, payloadText: '{"to":"ada"}' })
    expect(taken[2]).toMatchObject({ tenant: 'a' })
    expect(taken[3]).toMatchObject({ payloadText })
    expect(taken.every(({ waitingSince, createdAt }) => waitingSince === createdAt)).toBe(true)
    await transport.close()
  })

  it('wakes after what failed, which may be there all the same', async () => {
    const { clock, transport, heard } = await aLine()
    const job = aJob()
    for (const one of [aJob(), job]) await transport.publish([one])
    await until('the first was announced', async () => heard.length === 1)
    await expect(transport.publish([job])).rejects.toMatchObject({ code: '23505' })
    await clock.advance(125)
    await until('what may be there was announced', async () => heard.length === 2)
    await transport.close()
  })

  it('a process that ends says what it put in line last', async () => {
    const { transport, heard } = await aLine()
    for (let nth = 0; nth < 3; nth += 1) await transport.publish([aJob()])
    await until('the first was announced', async () => heard.length === 1)
    await transport.close()
    await until('the last were announced', async () => heard.length === 2)
  })

  it('no job waits for a poll, however producers and workers fall into step', async () => {
    const { url = '' } = await freshDatabase('server')
    const settings = { database: url, env: {}, logger: silent, pollMs: 60_000 }
    const [producer, consumer] = await Promise.all([openRedrive(settings), openRedrive(settings)])
    onTestFinished(async () => {
      await Promise.all([producer.close(), consumer.close()])
    })
    const job = defineJob({ name: 'send', handler: async () => null })
    const COUNT = 600
    let ended = 0
    const done = new Promise<void>(resolve => {
      consumer.on('job.completed', () => {
        ended += 1
        if (ended === COUNT) resolve()
      })
    })
    await consumer.work([job], { concurrency: 5 }).ready
    const random = seededRandom(1)
    for (let sent = 0; sent < COUNT; ) {
      // Together, so that they wait for each other's commits and some are behind others; then one after the other.
      const together = Math.min(COUNT - sent, 1 + Math.floor(random() * 12))
      await Promise.all(Array.from({ length: together }, () => producer.enqueue(job, null)))
      sent += together
      for (let nth = Math.floor(random() * 6); nth > 0 && sent < COUNT; nth -= 1, sent += 1)
        await producer.enqueue(job, null)
    }
    await done
  })
})
