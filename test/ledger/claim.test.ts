// What a claim brings: every job as it was enqueued and as far as it has come, whatever is in it, in the order of the line.
import { describe, expect, it } from 'vitest'
import type { NewJob } from '../../src/domain/job.js'
import { claim, heldBy } from '../../src/ledger/claim.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { settle } from '../../src/ledger/settle.js'
import { beforeFirst, DATABASES, freshDatabase } from '../support/databases.js'
import { aJob, aSession, retried, take, withPayloads } from '../support/story.js'
import { until } from '../support/until.js'

/** Three jobs of a queue of their own, of which somebody took two and did not come to commit it. */
async function givenUp(db: Database) {
  const session = await aSession(db)
  const queue = `given up ${session}`
  const jobs = [aJob({ queue }), aJob({ queue }), aJob({ queue })]
  await enqueue(db, jobs, null)
  const lane = { queue, name: 'send', limit: 2 }
  const broken = db.transaction(async tx => {
    expect(await claim({ ...db, query: tx.query }, session, [lane], 2)).toHaveLength(2)
    throw new Error('the connection broke')
  })
  await expect(broken).rejects.toThrow('the connection broke')
  const takeFrom = async (after?: string) =>
    (await claim(db, session, [{ ...lane, ...(after && { after }) }], 2)).map(({ id }) => id)
  return { ids: jobs.map(({ id }) => id), takeFrom }
}

/** What claims put between jobs and between fields, and what could be taken for an empty field. */
const ODD = `a\u001eb\u001fc,"d" '' \\ \n null`

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open }) => {
  let db: Database
  beforeFirst(async () => {
    db = (await open()).db
  })

  it('brings everything that was said of a job', async () => {
    const session = await aSession(db)
    const payloadText = JSON.stringify({ odd: ODD, list: [1, null, '👩‍👩‍👧‍👦'] })
    const told = { tenant: ODD, user: `${ODD}2`, project: `${ODD}3`, uniqueKey: `${ODD}4`, trace: `${ODD}5` }
    const job = aJob({ ...told, queue: 'told', service: 'mail, "smtp"', maxAttempts: 7, priority: 9, payloadText })
    await enqueue(db, [job], null)
    const [claimed] = await take(db, session, 10, 'told')
    expect(claimed).toMatchObject({ ...told, id: job.id, queue: 'told', name: 'send', payloadText })
    expect(claimed).toMatchObject({ service: 'mail, "smtp"', maxAttempts: 7, priority: 9, attempt: 1, suspect: false })
    expect(claimed?.firstClaimedAt).toBe(claimed?.claimedAt)
    expect((await heldBy(db, session)).find(({ id }) => id === job.id)).toEqual(claimed)
  })

  it('leaves out what was not said', async () => {
    const session = await aSession(db)
    await enqueue(db, [aJob({ queue: 'plain' })], null)
    const [claimed] = await take(db, session, 10, 'plain')
    for (const what of ['tenant', 'user', 'project', 'uniqueKey', 'trace', 'service', 'maxAttempts', 'heldBy']) {
      expect(claimed).not.toHaveProperty(what)
    }
    expect(claimed?.waitingSince).toBe(claimed?.createdAt)
  })

  it.each<[string, Partial<NewJob>]>([
    ['nothing', {}],
    ['a service', { service: 'smtp' }],
    ['its attempts', { maxAttempts: 3 }],
    ['its priority', { priority: 4 }],
    ['a tenant', { tenant: 'acme' }],
    ['a user', { user: 'u1' }],
    ['a project', { project: 'p1' }],
    ['a trace', { trace: '00-1-2-01' }],
    ['a large payload', { payloadText: JSON.stringify('x'.repeat(3_000)) }],
  ])('the short form and the long one say the same of a job with %s, alone or among lanes', async (what, said) => {
    const session = await aSession(db)
    const queue = `short ${what}`
    await enqueue(db, [aJob({ queue, ...said }), aJob({ queue, ...said })], null)
    const [alone] = await take(db, session, 1, queue)
    const lanes = ['send', 'other'].map(name => ({ queue, name, limit: 10 }))
    const [among] = await withPayloads(db, claim(db, session, lanes, 10))
    expect([alone, among]).toEqual([expect.objectContaining(said), expect.objectContaining(said)])
    expect(await heldBy(db, session)).toEqual([alone, among])
  })

  it('a job that was claimed before is not plain, whatever else is said of it', async () => {
    const session = await aSession(db)
    await enqueue(db, [aJob({ queue: 'before' })], null)
    await db.query(sql`UPDATE redrive.job SET first_claimed_at = now() - interval '1 hour' WHERE queue = 'before'`)
    const claimed = await take(db, session, 10, 'before')
    expect(claimed).toEqual(await heldBy(db, session))
    expect(claimed[0]?.firstClaimedAt).toBeLessThan(claimed[0]?.claimedAt ?? 0)
  })

  it('says how far a job has come', async () => {
    const session = await aSession(db)
    await enqueue(db, [aJob({ queue: 'again' })], null)
    const [first] = await take(db, session, 10, 'again')
    if (!first) throw new Error('nothing was claimed')
    await settle(db, [retried(first, 0)], '1')
    const [second] = await take(db, session, 10, 'again')
    expect(second).toMatchObject({
      id: first.id,
      attempt: 2,
      snoozes: 0,
      holds: 0,
      lost: 0,
      redrives: 0,
      suspect: false,
    })
    expect(second?.firstClaimedAt).toBe(first.firstClaimedAt)
    expect(second?.lease).not.toBe(first.lease)
  })

  it('finds what another took and gave up, from any place in line', async () => {
    // What is older than every transaction that runs is known to be free: those of other tests on this server are over in a moment.
    await until('nothing older runs', async () => {
      const { ids, takeFrom } = await givenUp(db)
      return (await takeFrom('0')).join() === ids.slice(0, 2).join()
    })
  })

  it('brings many, small and large, in the order of the line', async () => {
    const session = await aSession(db)
    const jobs = Array.from({ length: 230 }, (_, index) =>
      aJob({ queue: 'many', payloadText: JSON.stringify({ index, fill: 'x'.repeat(index % 20 === 3 ? 20_000 : 10) }) }),
    )
    await enqueue(db, jobs, null)
    const lanes = [{ queue: 'many', name: 'send', limit: 200 }]
    const claimed = await withPayloads(db, claim(db, session, lanes, 200))
    expect(claimed.map(({ id }) => id)).toEqual(jobs.slice(0, 200).map(({ id }) => id))
    expect(claimed.map(({ payloadText }) => payloadText)).toEqual(jobs.slice(0, 200).map(job => job.payloadText))
    const rest = await claim(db, session, [...lanes, { queue: 'none', name: 'send', limit: 10 }], 100)
    expect(rest.map(({ id, queue }) => [id, queue])).toEqual(jobs.slice(200).map(({ id }) => [id, 'many']))
    expect(await claim(db, session, lanes, 10)).toEqual([])
  })
})

it('while an older transaction runs, what another took and gave up is found from the start of the line', async () => {
  const { db } = await freshDatabase('server')
  await db.transaction(async older => {
    await older.query(sql`SELECT pg_current_xact_id()`)
    const { ids, takeFrom } = await givenUp(db)
    expect(await takeFrom('0')).toEqual(ids.slice(2))
    expect(await takeFrom()).toEqual(ids.slice(0, 2))
  })
})
