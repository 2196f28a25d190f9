// Rescue is by lapsed session, never by age. Seen red: with ORPHANS that do not ask whether the
// session has ended.
import { describe, expect, it } from 'vitest'
import { renewSession } from '../../src/ledger/session.js'
import { rescue } from '../../src/runtime/rescuer.js'
import { openRuntime } from '../support/runtime.js'
import { aJob, aSession, take } from '../support/story.js'

const LEASE_MS = 15_000
const HOUR_MS = 3_600_000

describe('pitfall 2: rescue by age alone', () => {
  it('pitfall 2: a job that runs for days under a living session is never rescued; a dead one waits for its lease only', async () => {
    const { db, clock, runtime, see } = await openRuntime()
    clock.now = '2030-01-01T00:00:00Z'
    const [long, short] = [aJob(), aJob({ name: 'other' })]
    await runtime.transport.publish([long, short])
    const [living, dying] = [await aSession(db, LEASE_MS), await aSession(db, LEASE_MS)]
    await take(db, living)
    await take(db, dying, 1, 'mail', 'other')

    clock.advance(LEASE_MS - 1)
    await renewSession(db, living, LEASE_MS)
    expect(await rescue(runtime)).toMatchObject({ rescued: 0, buried: 0 })
    clock.advance(2)
    expect(await rescue(runtime), 'the one that was not renewed').toMatchObject({ rescued: 1, buried: 0 })
    expect((await see(short.id)).state).toBe('waiting')

    for (let hour = 0; hour < 72; hour += 1) {
      clock.advance(LEASE_MS - 2)
      await renewSession(db, living, HOUR_MS + LEASE_MS)
      clock.advance(HOUR_MS)
      if (hour % 24 === 23) expect(await rescue(runtime)).toMatchObject({ rescued: 0, buried: 0 })
    }
    expect(await see(long.id)).toMatchObject({ state: 'active', attempt: 1, lost: 0 })
  })
})
