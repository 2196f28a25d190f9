// pitfall 4: redrive deletes first, then inserts "on conflict do nothing": the job is gone (pg-boss, by its own comment).
// Our rule: the dead letter stays until its job has ended; a conflict is a visible result; the whole envelope is kept.
//
// Seen to fail: with REDRIVE marking all it was asked for, and not only what was revived, as redriving.
import { describe, expect, it } from 'vitest'
import type { NewJob } from '../../src/domain/job.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { redrive } from '../../src/ledger/redrive.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER, everything } from '../support/ledger-state.js'
import { buried, completed } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

describe.each(EMBEDDED_AND_SERVER)('pitfall 4: a redrive loses nothing ($name)', ({ open }) => {
  async function withDead(...jobs: NewJob[]) {
    const { db } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const session = await aSession(db)
    for (const job of jobs) {
      await enqueue(db, [job], null)
      await settle(
        db,
        (await take(db, session)).map(claimed => buried(claimed)),
        '16',
      )
    }
    return { db, session }
  }

  it('a taken unique key is reported, and the dead letter is as it was; when the key is free it goes', async () => {
    const dead = aJob({ uniqueKey: 'invoice-7' })
    const { db, session } = await withDead(dead)
    await enqueue(db, [aJob({ uniqueKey: 'invoice-7' })], null)
    const before = await everything(db)
    expect(await redrive(db, [dead.id], null)).toMatchObject({ redriven: [], conflicts: [dead.id] })
    expect(await everything(db)).toEqual(before)

    await settle(
      db,
      (await take(db, session)).map(claimed => completed(claimed)),
      '16',
    )
    expect(await redrive(db, [dead.id], null)).toMatchObject({ redriven: [dead.id], conflicts: [] })
  })

  it('of many, only those in conflict stay behind', async () => {
    const [free, taken] = [aJob({ uniqueKey: 'a' }), aJob({ uniqueKey: 'b' })]
    const { db } = await withDead(free, taken)
    await enqueue(db, [aJob({ uniqueKey: 'b' })], null)
    const result = await redrive(db, [taken.id, free.id], null)
    expect(result).toMatchObject({ redriven: [free.id], conflicts: [taken.id] })
  })

  it('two dead letters of one key: the older goes, the other is reported', async () => {
    const [older, younger] = [aJob({ uniqueKey: 'a' }), aJob({ uniqueKey: 'a' })]
    const { db } = await withDead(older, younger)
    const result = await redrive(db, [younger.id, older.id], null)
    expect(result).toMatchObject({ redriven: [older.id], conflicts: [younger.id] })
  })

  it('the whole envelope comes back', async () => {
    const said = {
      ...aJob({ payloadText: '{"to":"ann","n":[1,2]}', priority: 8, maxAttempts: 7, uniqueKey: 'k' }),
      ...{ tenant: 'acme', user: 'ann', project: 'site', service: 'smtp' },
    }
    const { db, session } = await withDead(said)
    await redrive(db, [said.id], null)
    const [again] = await take(db, session)
    expect(again).toMatchObject({ ...said, attempt: 1, redrives: 1, lost: 0 })
  })

  it('asked for twice at once, it goes once', async () => {
    const dead = aJob()
    const { db, session } = await withDead(dead)
    const results = await Promise.all(Array.from({ length: 10 }, () => redrive(db, [dead.id], null)))
    expect(results.flatMap(({ redriven }) => redriven)).toEqual([dead.id])
    expect(await take(db, session)).toHaveLength(1)
  })
})
