// pitfall 5: dead letters vanish silently (pg-boss after 14 days; Sidekiq above 10,000 or after 6 months; River after 7
// days). Our rule: open ones never expire, however old and however many. Age is invariant 8's story; this one is about
// number, and about all that recovery cleans.
//
// Seen to fail: with the condition on resolved_at and status taken out of EXPIRE_DEAD_LETTERS.
import { describe, expect, it } from 'vitest'
import { countDeadLetters } from '../../src/ledger/dead-letter.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import {
  dropHistory,
  expireDeadLetters,
  forgetAttempts,
  forgetRuns,
  forgetSessions,
} from '../../src/ledger/retention.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { buried } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

const MANY = 10_500

describe.each(EMBEDDED_AND_SERVER)('pitfall 5: dead letters do not vanish ($name)', ({ open }) => {
  it('not after a year, not when there are more than ten thousand', async () => {
    const { db, clock } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const session = await aSession(db)
    await enqueue(
      db,
      Array.from({ length: MANY }, () => aJob()),
      null,
    )
    for (let batch = await take(db, session); batch.length > 0; batch = await take(db, session)) {
      await settle(
        db,
        batch.map(claimed => buried(claimed)),
        '16',
      )
    }
    clock.advance(366 * 86_400_000)
    for (const clean of [expireDeadLetters, forgetAttempts, forgetSessions, forgetRuns]) await clean(db, 0, 1_000)
    await dropHistory(db, 0, 1_000)
    expect(await countDeadLetters(db, { status: 'pending' }, MANY * 2)).toEqual({ value: MANY, exact: true })
  })
})
