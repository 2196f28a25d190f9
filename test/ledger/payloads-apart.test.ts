// A large payload is written once, apart from the rows that move: whoever reads a job finds it, wherever the job has come to,
// and it goes with the last of them.
import { describe, expect, it } from 'vitest'
import type { NewJob } from '../../src/domain/job.js'
import { claim, heldBy, orphans, readPayloads } from '../../src/ledger/claim.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { getDeadLetter, listDeadLetters } from '../../src/ledger/dead-letter.js'
import { removeDeadLetters } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { migrate } from '../../src/ledger/migrate.js'
import { lettersToShow } from '../../src/ledger/mirror.js'
import { redrive } from '../../src/ledger/redrive.js'
import {
  cleanFinished,
  dropHistory,
  ensureHistoryDays,
  expireDeadLetters,
  forgetPayloads,
} from '../../src/ledger/retention.js'
import { settle } from '../../src/ledger/settle.js'
import { migratedBefore } from '../support/before.js'
import { administer, DATABASES, type FreshDatabase, freshDatabase } from '../support/databases.js'
import { aJob, aSession, buried, cancelled, completed, take, withPayloads } from '../support/story.js'

const DAY_MS = 86_400_000
const LARGE = JSON.stringify({ fill: 'ä"\\ \u0001'.repeat(1_000) })
const aLargeJob = (job: Partial<NewJob> = {}) => aJob({ payloadText: LARGE, ...job })

const APART = sql`SELECT id FROM redrive.payload ORDER BY id`
const OWN = sql`
  SELECT id, payload::text AS payload FROM redrive.job UNION ALL SELECT id, payload::text FROM redrive.finished_job
  UNION ALL SELECT id, payload::text FROM redrive.dead_letter`

const apart = async (db: Database) => (await db.query<{ id: string }>(APART)).map(({ id }) => id)
const own = async (db: Database) =>
  Object.fromEntries(
    (await db.query<{ id: string; payload: string | null }>(OWN)).map(({ id, payload }) => [id, payload]),
  )

/** Takes it, and ends it so. */
async function end(db: Database, how: typeof buried | typeof completed | typeof cancelled): Promise<void> {
  const session = await aSession(db)
  const jobs = await take(db, session)
  expect(jobs.map(({ payloadText }) => payloadText)).toEqual(jobs.map(() => LARGE))
  expect(
    await settle(
      db,
      jobs.map(job => how(job)),
      '1',
    ),
  ).toEqual([])
}

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open }) => {
  const ways: Record<string, Partial<NewJob>> = {
    'as they come': {},
    'with a tenant': { tenant: 'acme' },
    'due later': { delayMs: 60_000 },
    'with a link to a trace': { trace: '00-1-2-01' },
  }

  it.each(Object.entries(ways))('one alone, many, and large beside small: %s', async (_, options) => {
    const { db } = await open()
    const alone = aLargeJob(options)
    const small = aJob({ payloadText: '{"small":true}', priority: 7, ...options })
    const many = [aLargeJob({ priority: 7, ...options }), small, aLargeJob({ priority: 7, ...options })]
    await enqueue(db, [alone], null)
    await enqueue(db, many, null)
    const large = [alone, ...many].filter(job => job !== small)
    expect(await apart(db)).toEqual(large.map(({ id }) => id))
    expect(await own(db)).toEqual({
      ...Object.fromEntries(large.map(({ id }) => [id, null])),
      [small.id]: small.payloadText,
    })
    for (const job of [alone, ...many]) {
      const { priority, tenant } = job
      const state = options.delayMs ? 'scheduled' : 'waiting'
      expect(await findJob(db, job.id)).toMatchObject({
        payload: JSON.parse(job.payloadText),
        priority,
        state,
        ...(tenant && { tenant }),
      })
    }
  })

  it('is not part of a claim: it is read when it is wanted, and told of as it comes', async () => {
    const { db } = await open()
    const [small, plain, scoped] = [aJob({ payloadText: '{"small":true}' }), aLargeJob(), aLargeJob({ tenant: 'acme' })]
    await enqueue(db, [small, plain, scoped], null)
    const jobs = await claim(db, await aSession(db), [{ queue: 'mail', name: 'send', limit: 10 }], 10)
    const texts = () => jobs.map(({ apart, payloadText }) => [apart, payloadText])
    expect(texts()).toEqual([
      [false, small.payloadText],
      [true, ''],
      [true, ''],
    ])
    const told: [string, string][] = []
    await readPayloads(db, jobs.slice(1), ({ id, payloadText }) => told.push([id, payloadText]))
    expect(told.toSorted()).toEqual([plain, scoped].map(({ id }) => [id, LARGE]).toSorted())
    expect(texts()).toEqual([
      [false, small.payloadText],
      [false, LARGE],
      [false, LARGE],
    ])
    expect(jobs.map(({ tenant }) => tenant)).toEqual([undefined, undefined, 'acme'])
  })

  it('one that somebody removed is read as nothing, which is no JSON', async () => {
    const { db } = await open()
    await enqueue(db, [aLargeJob(), aLargeJob()], null)
    const jobs = await claim(db, await aSession(db), [{ queue: 'mail', name: 'send', limit: 10 }], 10)
    const [gone, there] = jobs
    await db.query(sql`DELETE FROM redrive.payload WHERE id = $1::uuid`, [gone?.id as string])
    await readPayloads(db, jobs)
    expect([gone, there].map(job => [job?.apart, job?.payloadText])).toEqual([
      [false, ''],
      [false, LARGE],
    ])
  })

  it('many megabytes in pieces', async () => {
    const { db } = await open()
    const jobs = Array.from({ length: 300 }, (_, nth) =>
      nth % 7 ? aJob({ payloadText: `{"nth":${nth}}` }) : aLargeJob({ payloadText: `"${nth}${'x'.repeat(50_000)}"` }),
    )
    await enqueue(db, jobs, null)
    const claimed = await take(db, await aSession(db))
    expect(claimed.map(({ id, payloadText }) => [id, payloadText])).toEqual(
      jobs.map(({ id, payloadText }) => [id, payloadText]),
    )
  })

  it('a key that is taken leaves nothing behind', async () => {
    const { db } = await open()
    const first = aLargeJob({ uniqueKey: 'a' })
    const again = aLargeJob({ uniqueKey: 'a' })
    await enqueue(db, [first], null)
    expect(await enqueue(db, [again], null)).toEqual([{ id: first.id, deduplicated: true }])
    expect(await apart(db)).toEqual([first.id])
  })

  it('whoever wants it has it: of one lane, of several, what was missed, what a dead worker held', async () => {
    const { db } = await open()
    const jobs = [aLargeJob(), aLargeJob({ name: 'fetch' }), aJob({ name: 'fetch', payloadText: '{"small":true}' })]
    for (const job of jobs) await enqueue(db, [job], null)
    const session = await aSession(db)
    const payloads = (claimed: readonly { id: string; payloadText: string }[]) =>
      Object.fromEntries(claimed.map(({ id, payloadText }) => [id, payloadText]))
    const lanes = [
      { queue: 'mail', name: 'send', limit: 10 },
      { queue: 'mail', name: 'fetch', limit: 10 },
    ]
    const given = payloads(jobs)
    expect(payloads(await withPayloads(db, claim(db, session, lanes, 10)))).toEqual(given)
    expect(payloads(await heldBy(db, session))).toEqual(given)
    expect(payloads(await orphans(db, [session], 10))).toEqual(given)
  })

  it.each(['claim', 'claim_lanes', 'take', 'take_lanes'])(
    'so does %s, for a worker of the version before',
    async name => {
      const { db } = await open()
      await enqueue(db, [aLargeJob()], null)
      const session = await aSession(db)
      const lanes = '[{"queue":"mail","name":"send","limit":10}]'
      const statement = {
        claim: sql`SELECT payload FROM redrive.claim(NULL, $1::bigint, 'mail', 'send', 10, NULL)`,
        claim_lanes: sql`SELECT payload FROM redrive.claim_lanes(NULL, $1::bigint, '${lanes}', 10)`,
        take: sql`SELECT redrive.take(NULL, $1::bigint, 'mail', 'send', 10, NULL) AS payload`,
        take_lanes: sql`SELECT redrive.take_lanes(NULL, $1::bigint, '${lanes}', 10) AS payload`,
      }[name as 'claim']
      const [row] = await db.query<{ payload: string }>(statement, [session])
      expect(row?.payload.split('\x1f').at(-1)).toBe(LARGE)
    },
  )

  it('is the same through death, redrive, a second death and success', async () => {
    const { db } = await open()
    const job = aLargeJob()
    const payload = JSON.parse(LARGE)
    await enqueue(db, [job], null)
    await end(db, buried)
    expect(await getDeadLetter(db, job.id)).toMatchObject({ payload })
    expect((await listDeadLetters(db, {}, { limit: 10 })).items).toMatchObject([{ payload }])
    expect(await lettersToShow(db, ['mail'], null, 10)).toMatchObject([{ payloadText: LARGE }])
    const views = sql`
      SELECT (SELECT input_data::text FROM redrive.failed_jobs) AS failed,
        (SELECT original_job_data::text FROM redrive.dead_letter_queue) AS dead`
    expect(await db.query(views)).toEqual([{ failed: LARGE, dead: LARGE }])
    expect((await redrive(db, [job.id], null)).redriven).toEqual([job.id])
    await end(db, buried)
    expect(await getDeadLetter(db, job.id)).toMatchObject({ payload })
    await redrive(db, [job.id], null)
    await end(db, completed)
    expect(await findJob(db, job.id)).toMatchObject({ state: 'completed', payload })
    expect(await apart(db)).toEqual([job.id])
    expect(Object.values(await own(db))).not.toContain(LARGE)
  })

  it('goes with a letter that is removed, unless its job is in the history', async () => {
    const { db } = await open()
    const [gone, stays] = [aLargeJob(), aLargeJob()]
    await enqueue(db, [gone], null)
    await end(db, buried)
    await enqueue(db, [stays], null)
    await end(db, buried)
    await redrive(db, [stays.id], null)
    await end(db, cancelled)
    expect(new Set(await removeDeadLetters(db, [gone.id, stays.id]))).toEqual(new Set([gone.id, stays.id]))
    expect(await apart(db)).toEqual([stays.id])
    expect(await findJob(db, stays.id)).toMatchObject({ state: 'cancelled', payload: JSON.parse(LARGE) })
  })

  it('goes with a finished job that is cleaned away, unless it is a letter as well', async () => {
    const { db, clock } = await open({ now: new Date().toISOString() })
    const [gone, stays] = [aLargeJob(), aLargeJob()]
    await enqueue(db, [stays], null)
    await end(db, buried)
    await redrive(db, [stays.id], null)
    await enqueue(db, [gone], null)
    await end(db, completed)
    clock.advance(60_000)
    expect(await cleanFinished(db, 'mail', 'completed', 1_000, 100)).toMatchObject({ removed: 2 })
    expect(await apart(db)).toEqual([stays.id])
    expect(await getDeadLetter(db, stays.id)).toMatchObject({ payload: JSON.parse(LARGE) })
  })

  it('goes after its days, in batches, when neither job, letter nor history has it', async () => {
    const { db, clock } = await open({ now: new Date().toISOString() })
    await ensureHistoryDays(db, 1)
    const [live, dead, recovered] = [aLargeJob({ name: 'later' }), aLargeJob(), aLargeJob()]
    await enqueue(db, [live], null)
    await enqueue(db, [dead], null)
    await end(db, buried)
    await enqueue(db, [recovered], null)
    await end(db, buried)
    await redrive(db, [recovered.id], null)
    await enqueue(
      db,
      Array.from({ length: 5 }, () => aLargeJob()),
      null,
    )
    await end(db, completed)
    const tidy = async () => {
      await dropHistory(db, 7, 100)
      await expireDeadLetters(db, 30 * DAY_MS, 100)
      let batches = 0
      await forgetPayloads(db, 7 * DAY_MS, 2, async () => {
        batches += 1
      })
      return batches
    }
    clock.advance(6 * DAY_MS)
    await tidy()
    expect(await apart(db)).toHaveLength(8)
    clock.advance(3 * DAY_MS)
    expect(await tidy()).toBe(4)
    expect(await apart(db)).toEqual([live.id, dead.id, recovered.id])
    clock.advance(60 * DAY_MS)
    await tidy()
    expect(await apart(db)).toEqual([live.id, dead.id])
    expect(await findJob(db, dead.id)).toMatchObject({ payload: JSON.parse(LARGE) })
  })

  it('a job whose payload somebody deleted comes without one, and is not lost', async () => {
    const { db } = await open()
    await enqueue(db, [aLargeJob(), aJob()], null)
    await db.query(sql`DELETE FROM redrive.payload`)
    expect((await take(db, await aSession(db))).map(({ payloadText }) => payloadText)).toEqual(['', '{}'])
  })
})

it('a payload that is not JSON is refused for the whole batch, as a small one is', async () => {
  const { db } = await freshDatabase('memory')
  await expect(enqueue(db, [aLargeJob(), aJob({ payloadText: `"${'x'.repeat(3_000)}` })], null)).rejects.toThrow()
  expect(await apart(db)).toEqual([])
})

describe('a role that may only enqueue', () => {
  const inRole = async (work: (fresh: FreshDatabase & { role: string; grant: string }) => Promise<void>) => {
    const fresh = await freshDatabase('server', { migrated: false })
    const url = fresh.url as string
    const role = `redrive_test_shop_${process.pid}`
    const grant = `GRANT USAGE ON SCHEMA redrive TO ${role};
      GRANT SELECT, INSERT ON redrive.job TO ${role};
      GRANT USAGE ON SEQUENCE redrive.job_seq TO ${role};`
    await administer(url, `CREATE ROLE ${role}`)
    try {
      await work({ ...fresh, role, grant })
    } finally {
      await administer(url, `DROP OWNED BY ${role}`)
      await administer(url, `DROP ROLE ${role}`)
    }
  }
  const enqueueAs = (db: Database, role: string) =>
    db.transaction(async tx => {
      await tx.execute(`SET LOCAL ROLE ${role}`)
      await enqueue(tx, [aLargeJob()], null)
      await enqueue(tx, [aLargeJob(), aJob()], null)
      await enqueue(tx, [aLargeJob({ uniqueKey: 'a' })], null)
    })

  it('needs to be told of payloads', () =>
    inRole(async ({ db, role, grant }) => {
      await migrate(db)
      await db.transaction(tx => tx.execute(grant))
      await expect(enqueueAs(db, role)).rejects.toThrow('permission denied for table payload')
      await db.transaction(tx => tx.execute(`GRANT INSERT ON redrive.payload TO ${role}`))
      await enqueueAs(db, role)
      expect(await apart(db)).toHaveLength(3)
    }))

  it('need not if it was there before payloads lay apart', () =>
    inRole(async ({ db, role, grant }) => {
      await migratedBefore(db, 17, tx => tx.execute(grant))
      expect(await migrate(db)).not.toEqual([])
      await enqueueAs(db, role)
      expect(await apart(db)).toHaveLength(3)
    }))
})
