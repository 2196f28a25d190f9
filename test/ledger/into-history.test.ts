// The partition of a day is made while jobs end: those that were on their way into the default partition find the new
// one, and are not taken for jobs whose end cannot be stored.
import { expect, it } from 'vitest'
import { enqueue } from '../../src/ledger/enqueue.js'
import { ensureHistoryDays } from '../../src/ledger/retention.js'
import { settle } from '../../src/ledger/settle.js'
import { administer, freshDatabase } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { aJob, aSession, completed, take } from '../support/story.js'
import { until } from '../support/until.js'

const WAITING = `
  SELECT count(*)::integer AS statements FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'redrive' AND wait_event_type = 'Lock'`

it('a job completes while the partition of its day is attached', async () => {
  const { db, url = '', another } = await freshDatabase('server')
  const attached = gate()
  const commit = gate()
  const job = aJob()
  await enqueue(db, [job], null)
  const [claimed] = await take(db, await aSession(db))
  if (!claimed) throw new Error('nothing was claimed')

  const attaching = another().transaction(async tx => {
    await ensureHistoryDays(tx, 0)
    attached.open()
    await commit.passed
  })
  await attached.passed
  const settling = settle(db, [completed(claimed)], '0')
  await until('the settlement waits for the partition', async () => {
    const [waiting] = (await administer(url, WAITING)) as { statements: number }[]
    return waiting?.statements === 1
  })
  commit.open()
  await attaching

  expect(await settling).toEqual([])
  const history = await administer(url, 'SELECT id::text, state::text FROM redrive.finished_job')
  expect(history).toEqual([{ id: job.id, state: 'completed' }])
  expect(await administer(url, 'SELECT id FROM redrive.finished_job_default')).toEqual([])
})
