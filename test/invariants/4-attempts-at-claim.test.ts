// Attempts are counted when a job is claimed, so that a crash counts; everything that is nobody's fault has a counter of
// its own. Seen red: with `attempt = j.attempt` in TAKE, and without the refund in whatFollows.
import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../src/domain/settlement.js'
import { settle } from '../../src/ledger/settle.js'
import { rescue } from '../../src/runtime/rescuer.js'
import { openRuntime } from '../support/runtime.js'
import { givenBack, held, interrupted, retried, snoozed } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

type Claim = { id: Settlement['id']; lease: Settlement['lease'] }

describe('invariant 4: attempts are counted at claim', () => {
  it('invariant 4: the claim itself counts, so a worker that dies without a word has spent an attempt', async () => {
    const { db, clock, runtime, see } = await openRuntime()
    clock.now = '2030-01-01T00:00:00Z'
    const job = aJob()
    await runtime.transport.publish([job])
    expect((await see(job.id)).attempt).toBe(0)
    await take(db, await aSession(db, 15_000))
    expect(await see(job.id)).toMatchObject({ state: 'active', attempt: 1 })
    clock.advance(15_001)
    await rescue(runtime)
    expect(await see(job.id)).toMatchObject({ state: 'waiting', attempt: 1, lost: 1, attempts: [{ number: 1 }] })
    const [again] = await take(db, await aSession(db))
    expect(again?.attempt).toBe(2)
  })

  it.each<[string, (claim: Claim) => Settlement, object]>([
    ['a failure spends it', claim => retried(claim), { attempt: 1 }],
    ['a snooze does not', claim => snoozed(claim), { attempt: 0, snoozes: 1 }],
    ['a hold does not', claim => held(claim, 0), { attempt: 0, holds: 1 }],
    ['a shutdown does not', claim => interrupted(claim), { attempt: 0, interruptions: 1 }],
    ['what never started does not, and leaves no trace', claim => givenBack(claim), { attempt: 0, attempts: [] }],
  ])('invariant 4: %s', async (_, end, counters) => {
    const { db, runtime, see } = await openRuntime()
    const job = aJob()
    await runtime.transport.publish([job])
    const [claim] = await take(db, await aSession(db))
    if (!claim) throw new Error('nothing to claim')
    await settle(db, [end(claim)], '0')
    const none = { attempt: 0, snoozes: 0, holds: 0, interruptions: 0, lost: 0, redrives: 0 }
    expect(await see(job.id)).toMatchObject({ ...none, ...counters })
  })
})
