// To cancel takes two statements, one for a job that waits and one for a job that runs. Whatever the job does between them, it
// is cancelled, asked to stop, or has ended.
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { cancelJob } from '../../src/ledger/cancel.js'
import type { Database, Param, Statement } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { ensureQueues, queueStatistics } from '../../src/ledger/queue.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { buried, completed, givenBack, retried } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

/** A database on which `meanwhile` happens when the first statement is done. */
function interrupted(db: Database, meanwhile: () => Promise<unknown>): Database {
  let happened = false
  const query = async <Row>(statement: Statement, params: readonly Param[] = []) => {
    const rows = await db.query<Row>(statement, params)
    if (!happened) {
      happened = true
      await meanwhile()
    }
    return rows
  }
  return { ...db, query }
}

const ENDS: [string, (job: ClaimedJob) => Settlement, answer: string, state: string][] = [
  ['is to be tried again later', job => retried(job, 60_000), 'cancelled', 'cancelled'],
  ['is to be tried again at once', job => retried(job), 'cancelled', 'cancelled'],
  ['is given back', givenBack, 'cancelled', 'cancelled'],
  ['completes', job => completed(job), 'none', 'completed'],
  ['dies', job => buried(job), 'none', 'dead'],
]

describe.each(EMBEDDED_AND_SERVER)('$name', ({ open }) => {
  it.each(ENDS)('a running job that %s between the two', async (_what, end, answer, state) => {
    const { db, another } = await open()
    await ensureQueues(db, ['mail'])
    await enqueue(db, [aJob()], null)
    const [job] = await take(db, await aSession(db), 1)
    if (!job) throw new Error('nothing was claimed')
    const cancelling = interrupted(db, () => settle(another(), [end(job)], '0'))
    expect(await cancelJob(cancelling, job.id, 'not wanted')).toBe(answer)
    expect(await findJob(db, job.id)).toMatchObject({ state })
    const [counts] = await queueStatistics(db)
    expect(counts).toMatchObject({ cancelled: state === 'cancelled' ? 1 : 0, waiting: 0, retrying: 0, active: 0 })
  })
})
