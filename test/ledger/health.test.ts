// What health is judged by, as the ledger shows it: lines and their workers, what is overdue, and what ended lately.
import { describe, expect, it } from 'vitest'
import { enqueue } from '../../src/ledger/enqueue.js'
import { readLines } from '../../src/ledger/health.js'
import { announceJobTypes } from '../../src/ledger/job-type.js'
import { endedWithin, takePulse } from '../../src/ledger/pulse.js'
import { pauseQueue } from '../../src/ledger/queue.js'
import { finishRun, startRun } from '../../src/ledger/recovery-run.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aJob, aSession, buried, completed, retried, take } from '../support/story.js'

const START = '2030-01-01T12:00:00.000Z'
const MINUTE = 60_000

describe.each(EMBEDDED_AND_SERVER)('on $name', ({ open }) => {
  it('an empty ledger is empty, and nothing ended in it', async () => {
    const { db } = await open({ now: START })
    expect(await readLines(db)).toEqual({
      now: Date.parse(START),
      lanes: [],
      silentSessions: [],
      overdueMs: 0,
      openDeadLetters: 0,
      alive: false,
      empty: true,
    })
    expect(await endedWithin(db, 15 * MINUTE)).toEqual({ since: Date.parse('2030-01-01T00:00:00Z'), queues: [] })
  })

  it('tells for each lane how long its oldest job waits, whatever its priority, and who could take it', async () => {
    const { db, clock } = await open({ now: START })
    await enqueue(db, [aJob({ priority: 1 })], null)
    clock.advance(1_000)
    await enqueue(db, [aJob({ priority: 9 }), aJob()], null)
    await enqueue(db, [aJob({ name: 'forward' })], null)
    await enqueue(db, [aJob({ queue: 'images', name: 'resize' })], null)
    await enqueue(db, [aJob({ queue: 'paused' })], null)
    await pauseQueue(db, 'paused', 'ada')
    await announceJobTypes(db, [{ queue: 'mail', name: 'send', service: 'smtp', policy: {}, settings: {} }])
    await aSession(db, 60_000)
    clock.advance(1_000)
    const { lanes, empty, alive } = await readLines(db)
    expect([empty, alive]).toEqual([false, true])
    expect(new Set(lanes)).toEqual(
      new Set([
        { queue: 'mail', name: 'send', waitedMs: 2_000, paused: false, worked: true, known: true, service: 'smtp' },
        { queue: 'mail', name: 'forward', waitedMs: 1_000, paused: false, worked: true, known: false, service: null },
        { queue: 'images', name: 'resize', waitedMs: 1_000, paused: false, worked: false, known: false, service: null },
        { queue: 'paused', name: 'send', waitedMs: 1_000, paused: true, worked: false, known: false, service: null },
      ]),
    )
  })

  it('does not count what runs, and sees sessions that lapsed, retries that nobody promotes, and deaths', async () => {
    const { db, clock } = await open({ now: START })
    await enqueue(db, [aJob(), aJob(), aJob()], null)
    const [a, b] = await take(db, await aSession(db, 10_000))
    if (!(a && b)) throw new Error('three jobs were to be claimed')
    await settle(db, [retried(a, 1_000), buried(b)], '1')
    clock.advance(15_000)
    const lines = await readLines(db)
    expect(lines).toMatchObject({
      lanes: [],
      silentSessions: [{ worker: 'worker-1', silentMs: 5_000 }],
      overdueMs: 14_000,
      openDeadLetters: 1,
    })
  })

  it('tells of the last full recovery run, not of the rescues in between', async () => {
    const { db, clock } = await open({ now: START })
    const nothing = { rescued: 0, promoted: 0, buried: 0, triaged: 0, cleaned: 0, expired: 0 }
    const run = await startRun(db, 'schedule', 'w')
    await finishRun(db, run?.id ?? '', nothing, 'no space left')
    clock.advance(MINUTE)
    const rescue = await startRun(db, 'lapsed_session', 'w')
    await finishRun(db, rescue?.id ?? '', { ...nothing, rescued: 1 }, null)
    expect((await readLines(db)).recovery).toEqual({ startedMsAgo: MINUTE, error: 'no space left' })
  })

  it('tells what ended lately, by pulses of a minute, over midnight too', async () => {
    const { db, clock } = await open({ now: '2030-01-01T23:50:00.000Z' })
    const session = await aSession(db, 3_600_000)
    const end = async (count: number) => {
      await enqueue(db, Array.from({ length: count + 2 }, aJob.bind(null, {})), null)
      const [a, b, ...others] = await take(db, session, count + 2)
      if (!(a && b)) throw new Error('jobs were to be claimed')
      await settle(db, [buried(a), retried(b, 3_600_000), ...others.map(job => completed(job))], '1')
    }
    expect(await takePulse(db)).toBe(60_000)
    await end(3)
    // So far nothing is old enough: from the first pulse on.
    expect(await endedWithin(db, 15 * MINUTE)).toEqual({
      since: Date.parse('2030-01-01T23:50:00Z'),
      queues: [{ queue: 'mail', completed: 3, failed: 2, dead: 1 }],
    })
    for (let minute = 1; minute <= 30; minute += 1) {
      clock.advance(MINUTE)
      if (minute === 15) await end(5)
      expect(await takePulse(db)).toBe(60_000)
    }
    await end(1)
    clock.advance(20_000)
    expect(await takePulse(db), 'the rest of the minute').toBe(40_000)
    const lately = await endedWithin(db, 15 * MINUTE)
    expect(lately.since).toBe(Date.parse('2030-01-02T00:05:00Z'))
    expect(lately.queues).toEqual([{ queue: 'mail', completed: 1, failed: 2, dead: 1 }])
    expect((await endedWithin(db, 16 * MINUTE)).queues).toMatchObject([{ completed: 6 }])
    expect((await endedWithin(db, 60 * MINUTE)).queues).toMatchObject([{ completed: 9, failed: 6, dead: 3 }])
    const pulses = () => db.query({ text: 'SELECT at FROM redrive.pulse' })
    expect(await pulses()).toHaveLength(31)
    clock.advance(4 * 3_600_000)
    await takePulse(db)
    expect(await pulses(), 'old ones are forgotten').toHaveLength(1)
    expect((await endedWithin(db, 15 * MINUTE)).queues).toEqual([])
  })
})
