// While a new version is rolled out, workers of the one before share the ledger: what they call is still there, keeps to
// the same line and the same fences, and takes nothing that a new worker has.
import { describe, expect, it } from 'vitest'
import type { JobId, Lease, SessionId } from '../../src/domain/ids.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { settle } from '../../src/ledger/settle.js'
import { DATABASES } from '../support/databases.js'
import { aJob, aSession, completed, take } from '../support/story.js'

interface Claimed {
  readonly place: string
  readonly id: JobId
  readonly lease: Lease
}

// As versions before 0013_lean_claim.sql ask.
const CLAIM = sql`SELECT place::text AS place, id, lease::text AS lease FROM redrive.claim(NULL, $1::bigint, $2, 'send', $3::integer, NULL)`
const CLAIM_LANES = sql`SELECT place::text AS place, id, lease::text AS lease FROM redrive.claim_lanes(NULL, $1::bigint, $2::json, $3::integer)`
// As versions before 0019_plain_claim.sql do.
const TAKE = sql`SELECT redrive.take(NULL, $1::bigint, $2, 'send', $3::integer, NULL) AS jobs`
const TAKE_LANES = sql`SELECT redrive.take_lanes(NULL, $1::bigint, $2::json, $3::integer) AS jobs`
// As versions before 0026_payloads_in_time.sql do.
const BRING = sql`SELECT redrive.bring(NULL, $1::bigint, $2, 'send', $3::integer, NULL) AS jobs`
const BRING_LANES = sql`SELECT redrive.bring_lanes(NULL, $1::bigint, $2::json, $3::integer) AS jobs`
const COMPLETE = sql`
  SELECT redrive.complete(NULL, 1, $1::tid[], $2::bigint[], $3::uuid[], NULL)::text AS refused`

const LANES = '[{"queue":"mail","name":"send","limit":10}]'

const list = (values: readonly string[]) => `{${values.map(value => JSON.stringify(value)).join(',')}}`

/** `heads`: each text begins with what its jobs have in common. */
const unpacked = (parcels: readonly { jobs: string }[], heads = 0): Claimed[] =>
  parcels
    .flatMap(({ jobs }) => jobs.split('\x1e').slice(heads))
    .map(job => job.split('\x1f'))
    .map(([place, id, lease]) => ({ place, id, lease }) as Claimed)

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open }) => {
  const claims: Record<string, (db: Database, session: SessionId, most: number) => Promise<Claimed[]>> = {
    claim: (db, session, most) => db.query<Claimed>(CLAIM, [session, 'mail', most]),
    claim_lanes: (db, session, most) => db.query<Claimed>(CLAIM_LANES, [session, LANES, most]),
    take: async (db, session, most) => unpacked(await db.query(TAKE, [session, 'mail', most])),
    take_lanes: async (db, session, most) => unpacked(await db.query(TAKE_LANES, [session, LANES, most])),
    bring: async (db, session, most) => unpacked(await db.query(BRING, [session, 'mail', most]), 1),
    bring_lanes: async (db, session, most) => unpacked(await db.query(BRING_LANES, [session, LANES, most]), 1),
  }

  it.each(Object.entries(claims))('%s: each job goes to one of them, and each ends only its own', async (_, claim) => {
    const { db } = await open()
    const jobs = Array.from({ length: 6 }, () => aJob())
    await enqueue(db, jobs, null)
    const [older, newer] = [await aSession(db), await aSession(db)]
    const first = await claim(db, older, 2)
    const second = await take(db, newer, 2)
    const third = await claim(db, older, 10)
    const taken = [...first, ...second, ...third].map(({ id }) => id)
    expect(taken).toEqual(jobs.map(({ id }) => id))

    const mine = [...first, ...third]
    const others = second.map(({ receipt, id, lease }) => ({
      place: receipt as string,
      id,
      lease: `${lease}0` as Lease,
    }))
    const ended = [...mine, ...others]
    const refused = await db.query<{ refused: string }>(COMPLETE, [
      list(ended.map(({ place }) => place)),
      list(ended.map(({ lease }) => lease)),
      list(ended.map(({ id }) => id)),
    ])
    expect(refused.map(row => row.refused).sort()).toEqual(others.map(({ lease }) => lease).sort())
    expect(
      await settle(
        db,
        second.map(job => completed(job)),
        '2',
      ),
    ).toEqual([])
    const left = await db.query<{ live: string; finished: string }>(sql`
      SELECT (SELECT count(*) FROM redrive.job)::text AS live, (SELECT count(*) FROM redrive.finished_job)::text AS finished`)
    expect(left).toEqual([{ live: '0', finished: '6' }])
  })
})
