// A worker that lost a job and claimed it again may bring both ends in one batch: only the one that holds counts, once.
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { attemptsOf } from '../../src/ledger/attempt.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { ensureQueues, queueStatistics } from '../../src/ledger/queue.js'
import { settle } from '../../src/ledger/settle.js'
import { DATABASES } from '../support/databases.js'
import { aJob, aSession, buried, cancelled, completed, retried, take } from '../support/story.js'

const PLACES = sql`
  SELECT (SELECT count(*)::integer FROM redrive.job) AS live, (SELECT count(*)::integer FROM redrive.finished_job) AS finished,
         (SELECT count(*)::integer FROM redrive.dead_letter) AS dead`

/** A job that was claimed, given back and claimed again: the outdated claim and the one that holds. */
async function claimedTwice(db: Database): Promise<[ClaimedJob, ClaimedJob]> {
  await ensureQueues(db, ['mail'])
  await enqueue(db, [aJob()], null)
  const session = await aSession(db)
  const [first] = await take(db, session)
  if (!first) throw new Error('the job was to be claimed')
  await settle(db, [retried(first, 0)], '1')
  const [second] = await take(db, session)
  if (!second) throw new Error('the job was to be claimed again')
  expect(second).toMatchObject({ id: first.id, attempt: 2 })
  expect(second.lease).not.toBe(first.lease)
  return [first, second]
}

const ENDS: readonly [string, (job: ClaimedJob) => Settlement, object, object][] = [
  ['completed', job => completed(job), { live: 0, finished: 1, dead: 0 }, { completed: 1, cancelled: 0, dead: 0 }],
  ['cancelled', job => cancelled(job), { live: 0, finished: 1, dead: 0 }, { completed: 0, cancelled: 1, dead: 0 }],
  ['buried', job => buried(job), { live: 0, finished: 0, dead: 1 }, { completed: 0, cancelled: 0, dead: 1 }],
  ['retried', job => retried(job), { live: 1, finished: 0, dead: 0 }, { completed: 0, cancelled: 0, dead: 0 }],
]

describe.each(DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server'))('$name', ({ open }) => {
  it.each(ENDS)('%s by an outdated and a holding claim at once: once', async (_how, end, places, counts) => {
    const { db } = await open()
    const [outdated, holding] = await claimedTwice(db)
    const [late, good] = [end(outdated), end(holding)]
    expect(await settle(db, [late, good], '1'), 'only the outdated one is refused').toEqual([late])
    expect(await db.query(PLACES)).toEqual([places])
    expect((await queueStatistics(db))[0]).toMatchObject(counts)
    const numbers = (await attemptsOf(db, holding.id)).map(attempt => attempt.number)
    expect(numbers).toEqual(good.outcome.type === 'succeeded' ? [1] : [1, 2])
    expect(await settle(db, [good], '1'), 'and a second time not at all').toEqual([good])
    expect(await db.query(PLACES)).toEqual([places])
  })

  it.each(ENDS)('%s by an outdated claim alone: nothing is changed', async (_how, end) => {
    const { db } = await open()
    const [outdated] = await claimedTwice(db)
    expect(await settle(db, [end(outdated)], '1')).toHaveLength(1)
    expect(await db.query(PLACES)).toEqual([{ live: 1, finished: 0, dead: 0 }])
    expect((await queueStatistics(db))[0]).toMatchObject({ active: 1 })
  })
})
