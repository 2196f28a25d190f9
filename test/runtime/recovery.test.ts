// The recovery run: each of its parts, the record it leaves, and one at a time over all processes.
import { describe, expect, it, onTestFinished } from 'vitest'
import { cancelJob } from '../../src/ledger/cancel.js'
import { claim } from '../../src/ledger/claim.js'
import type { Database, Statement } from '../../src/ledger/database.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { markFailed } from '../../src/ledger/dead-letter-change.js'
import { announceJobTypes } from '../../src/ledger/job-type.js'
import { setPolicy } from '../../src/ledger/policy.js'
import { recoveryStatistics, startRun } from '../../src/ledger/recovery-run.js'
import { ensureHistoryDays } from '../../src/ledger/retention.js'
import { openSession } from '../../src/ledger/session.js'
import { settle } from '../../src/ledger/settle.js'
import { defineJob } from '../../src/runtime/definition.js'
import { DEFAULT_RETENTION } from '../../src/runtime/janitor.js'
import { Policies } from '../../src/runtime/policies.js'
import { Recovery } from '../../src/runtime/recovery.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { aFailure, buried, completed, retried } from '../support/story.js'
import { until } from '../support/until.js'

const DAY_MS = 86_400_000
const START = '2030-01-01T12:00:00Z'

const MAIL = { scope: 'queue', target: 'mail' } as const
const SEND = { scope: 'job', target: 'send' } as const
const mail = defineJob({ name: 'send', queue: 'mail', handler: async () => null })

async function story(change?: (runtime: Runtime) => Partial<Runtime>) {
  const moving = await openRuntime('memory', change)
  const { clock, db, runtime } = moving
  clock.now = START
  await ensureHistoryDays(db, 3)
  const recovery = new Recovery(runtime, {
    intervalMs: 300_000,
    leaseMs: 15_000,
    retention: DEFAULT_RETENTION,
    worker: 'process 1',
  })
  const session = () =>
    openSession(db, {
      worker: 'w1',
      host: 'h',
      pid: 1,
      version: null,
      queues: ['mail'],
      concurrency: 1,
      leaseMs: 15_000,
    })
  const take = async () => {
    const [job] = await claim(db, await session(), [{ queue: 'mail', name: 'send', limit: 1 }], 1)
    if (!job) throw new Error('nothing to claim')
    return job
  }
  return { ...moving, recovery, take }
}

describe('a recovery run', () => {
  it('rescues the jobs of a worker whose lease has run out, and not one moment before', async () => {
    const { recovery, take, enqueue, see, clock } = await story()
    const id = await enqueue(mail)
    await take()
    clock.advance(14_999)
    expect(await recovery.run()).toMatchObject({ rescued: 0 })
    expect((await see(id)).state).toBe('active')
    clock.advance(2)
    expect(await recovery.run()).toMatchObject({ rescued: 1, status: 'succeeded' })
    expect(await see(id)).toMatchObject({ state: 'waiting', attempt: 1, lost: 1, attempts: [{ outcome: 'lost' }] })
  })

  it('releases delayed jobs and retries that are due', async () => {
    const { recovery, take, db, enqueue, see, clock } = await story()
    const retry = await enqueue(mail)
    await settle(db, [retried(await take(), 60_000)], '0')
    const later = await enqueue(mail, {}, { delayMs: 120_000 })
    clock.advance(60_000)
    expect(await recovery.run()).toMatchObject({ promoted: 1 })
    expect([(await see(retry)).state, (await see(later)).state]).toEqual(['waiting', 'scheduled'])
  })

  it('cancels a job whose cancellation its worker did not hear before the attempt ended', async () => {
    const { recovery, take, db, enqueue, see } = await story()
    const id = await enqueue(mail)
    const job = await take()
    expect(await cancelJob(db, id, 'not wanted')).toBe('requested')
    await settle(db, [retried(job, 60_000)], '0')
    await recovery.run()
    expect(await see(id)).toMatchObject({ state: 'cancelled', reason: 'not wanted' })
  })

  it('buries what a lowered policy has exhausted, with the failure it was waiting to retry', async () => {
    const { recovery, take, db, enqueue, see } = await story()
    const id = await enqueue(mail)
    await settle(db, [retried(await take(), 60_000, aFailure({ message: 'no answer' }))], '0')
    expect(await recovery.run()).toMatchObject({ buried: 0 })
    await setPolicy(db, MAIL, { policy: { attempts: 1 }, setBy: 'ada' })
    expect(await recovery.run()).toMatchObject({ buried: 1 })
    expect(await see(id)).toMatchObject({ state: 'dead', reason: 'transient (HTTP status 503): attempt 1 of 1' })
    expect(await getDeadLetter(db, id)).toMatchObject({ message: 'no answer', totalAttempts: 1, kind: 'transient' })
  })

  it('ends what is exhausted by the policy that its own workers announced, without its code', async () => {
    const { recovery, take, db, enqueue, see } = await story()
    await announceJobTypes(db, [
      { queue: 'mail', name: 'send', service: null, policy: { deadLetter: false }, settings: {} },
    ])
    const id = await enqueue(mail)
    await settle(db, [retried(await take(), 60_000)], '0')
    await setPolicy(db, MAIL, { policy: { attempts: 1 }, setBy: 'ada' })
    expect(await recovery.run()).toMatchObject({ buried: 0 })
    const reason = 'transient (HTTP status 503): attempt 1 of 1; dead letters are off'
    expect(await see(id)).toMatchObject({ state: 'cancelled', reason })
  })

  it('decides by the policy of the job name, which beats that of its queue', async () => {
    const { recovery, take, db, enqueue, see } = await story()
    const id = await enqueue(mail)
    await settle(db, [retried(await take(), 60_000)], '0')
    await setPolicy(db, MAIL, { policy: { attempts: 1 }, setBy: 'ada' })
    await setPolicy(db, SEND, { policy: { attempts: 2 }, setBy: 'ada' })
    expect(await recovery.run()).toMatchObject({ buried: 0 })
    await setPolicy(db, SEND, { policy: { attempts: 1 }, setBy: 'ada' })
    await setPolicy(db, MAIL, { policy: { attempts: 9 }, setBy: 'ada' })
    expect(await recovery.run()).toMatchObject({ buried: 1 })
    expect(await see(id)).toMatchObject({ state: 'dead', reason: 'transient (HTTP status 503): attempt 1 of 1' })
  })

  it('buries what waits to retry a kind that is not retried any more, and nothing else', async () => {
    const { recovery, take, db, enqueue, see } = await story()
    const [busy, down] = [await enqueue(mail), await enqueue(mail)]
    await settle(db, [retried(await take(), 60_000)], '0')
    await settle(db, [retried(await take(), 60_000, aFailure({ kind: 'network', because: 'ECONNRESET' }))], '0')
    await setPolicy(db, SEND, { policy: { retryKinds: { network: false } }, setBy: 'ada' })
    expect(await recovery.run()).toMatchObject({ buried: 1 })
    expect((await see(busy)).state).toBe('retrying')
    const reason = 'network (ECONNRESET): failures of this kind are not retried'
    expect(await see(down)).toMatchObject({ state: 'dead', reason })
  })

  it('decides by the settings of the workers, not by its own', async () => {
    const { recovery, take, db, enqueue, see, clock } = await story(() => ({ policies: new Policies({ attempts: 9 }) }))
    await announceJobTypes(db, [{ queue: 'mail', name: 'send', service: null, policy: {}, settings: { attempts: 1 } }])
    const id = await enqueue(mail)
    await take()
    clock.advance(15_001)
    expect(await recovery.run()).toMatchObject({ rescued: 1, buried: 1 })
    expect((await see(id)).reason).toContain('attempt 1 of 1')
  })

  it("forgets a queue's policy that was taken away again", async () => {
    const { recovery, take, db, enqueue, see, clock } = await story()
    await setPolicy(db, MAIL, { policy: { attempts: 1 }, setBy: 'ada' })
    await enqueue(mail)
    await take()
    clock.advance(15_001)
    expect(await recovery.run()).toMatchObject({ rescued: 1, buried: 1 })
    await setPolicy(db, MAIL, { policy: null, setBy: 'ada' })
    const id = await enqueue(mail)
    await take()
    clock.advance(15_001)
    expect(await recovery.run()).toMatchObject({ rescued: 1, buried: 0 })
    expect((await see(id)).state).toBe('waiting')
  })

  it('removes history and resolved dead letters past their retention, and never open ones', async () => {
    const { recovery, take, db, enqueue, clock } = await story()
    const [done, open, closed] = [await enqueue(mail), await enqueue(mail), await enqueue(mail)]
    await settle(db, [completed(await take()), buried(await take()), buried(await take())], '0')
    await markFailed(db, closed, 'nobody needs it')
    clock.advance(7 * DAY_MS)
    expect(await recovery.run()).toMatchObject({ cleaned: 0, expired: 0 })
    clock.advance(1 * DAY_MS)
    expect(await recovery.run()).toMatchObject({ cleaned: 1, expired: 0 })
    clock.advance(22 * DAY_MS + 1)
    expect(await recovery.run()).toMatchObject({ cleaned: 0, expired: 1 })
    clock.advance(3650 * DAY_MS)
    await recovery.run()
    expect(await getDeadLetter(db, open)).toMatchObject({ status: 'pending' })
    expect(await getDeadLetter(db, closed)).toBeUndefined()
    expect(await db.query({ text: 'SELECT 1 FROM redrive.finished_job' })).toEqual([])
    expect(done).not.toBe(open)
  })
})

describe('the record of runs', () => {
  it('has each run with what it did, and counts them', async () => {
    const { recovery, db, clock, next } = await story()
    const heard = next('recovery.finished')
    const run = await recovery.run()
    expect(run).toMatchObject({ cause: 'demand', worker: 'process 1', status: 'succeeded', durationMs: 0 })
    expect(await heard).toMatchObject({ cause: 'demand', rescued: 0, error: undefined })
    clock.advance(1_000)
    await recovery.run()
    expect(await recoveryStatistics(db)).toMatchObject({
      totalRuns: 2,
      successfulRuns: 2,
      failedRuns: 0,
      running: false,
      lastRunAt: new Date(Date.parse(START) + 1_000),
      recent: [{ cause: 'demand' }, { id: run?.id }],
    })
  })

  it('keeps a failed run with its error and what it did before, and the next run is made all the same', async () => {
    let broken = true
    const failing = (db: Database): Database => ({
      ...db,
      query: async (statement: Statement, params) => {
        if (broken && statement.text.includes('ensure_history_day')) throw new Error('the disk is full')
        return db.query(statement, params)
      },
    })
    const { recovery, enqueue, take, clock, db } = await story(({ db }) => ({ db: failing(db) }))
    await enqueue(mail)
    await take()
    clock.advance(15_001)
    expect(await recovery.run()).toMatchObject({ status: 'failed', error: 'the disk is full', rescued: 1 })
    broken = false
    expect(await recovery.run()).toMatchObject({ status: 'succeeded' })
    expect(await recoveryStatistics(db)).toMatchObject({ totalRuns: 2, failedRuns: 1, successfulRuns: 1 })
  })

  it('has one run at a time, whoever asks and however often', async () => {
    const inside = gate()
    const goOn = gate()
    const slow = (db: Database): Database => ({
      ...db,
      query: async (statement: Statement, params) => {
        if (statement.text.includes('ensure_history_day')) {
          inside.open()
          await goOn.passed
        }
        return db.query(statement, params)
      },
    })
    const { recovery, runtime } = await story(({ db }) => ({ db: slow(db) }))
    const first = recovery.run()
    await inside.passed
    const other = new Recovery(runtime, {
      intervalMs: 1_000,
      leaseMs: 15_000,
      retention: DEFAULT_RETENTION,
      worker: 'process 2',
    })
    expect(await Promise.all([recovery.run(), other.run()])).toEqual([undefined, undefined])
    goOn.open()
    expect(await first).toMatchObject({ status: 'succeeded' })
    expect(await other.run()).toMatchObject({ status: 'succeeded', worker: 'process 2' })
  })

  it('looks at sessions when the next would lapse, and seldom before', async () => {
    const hands = manualClock(Date.parse(START))
    const looks: number[] = []
    const counting = (db: Database): Database => ({
      ...db,
      query: (statement: Statement, params) => {
        if (statement.text.includes("ended_by = 'lapsed'")) looks.push(hands.monotonic())
        return db.query(statement, params)
      },
    })
    const { recovery, take, enqueue, clock, next } = await story(({ db }) => ({
      clock: hands,
      random: () => 0,
      db: counting(db),
    }))
    await enqueue(mail)
    await take()
    let rescuedAt: number | undefined
    void next('job.rescued').then(() => {
      rescuedAt = hands.monotonic()
    })
    onTestFinished(() => recovery.stop())
    recovery.start()
    // Both of its loops wait.
    const atRest = () => until('it has looked', () => hands.pending === 2 || undefined)
    await atRest()
    while (rescuedAt === undefined && hands.monotonic() < 20_000) {
      clock.advance(100)
      await hands.advance(100)
      await atRest()
    }
    expect(rescuedAt).toBeGreaterThanOrEqual(15_000)
    expect(rescuedAt).toBeLessThanOrEqual(15_300)
    expect(looks.filter(at => at > 3_000 && at < 15_000)).toEqual([8_000, 13_000])
  })

  it('gives up a run whose process has died, after a minute of silence', async () => {
    const { recovery, db, clock } = await story()
    const dead = await startRun(db, 'schedule', 'a process that died')
    clock.advance(59_000)
    expect(await recovery.run()).toBeUndefined()
    clock.advance(2_000)
    expect(await recovery.run()).toMatchObject({ status: 'succeeded' })
    const { recent } = await recoveryStatistics(db)
    expect(recent.find(({ id }) => id === dead?.id)).toMatchObject({
      status: 'failed',
      error: 'its process stopped showing life',
    })
  })
})
