// What failed over a range of time: by kind, service, queue and cause, in slices.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { settle } from '../../src/ledger/settle.js'
import { statistics } from '../../src/operator/statistics.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aFailure, aJob, aSession, buried, completed, retried, take } from '../support/story.js'

const START = '2030-01-01T12:00:00.000Z'
const HOUR = 3_600_000

const busy = aFailure({ service: 'smtp', message: 'the mail server is busy', fingerprint: 'v1:busy' })
const refused = aFailure({
  kind: 'authentication',
  message: 'forbidden',
  because: 'HTTP status 403',
  fingerprint: 'v1:refused',
})

/** As many as are looked at (MOST_SLICES). */
const SLICES = 20_000
const FILL_GROUP = sql`
  INSERT INTO redrive.failure_group (fingerprint, title, kind, first_seen, last_seen, failures, deaths, updated_at)
  VALUES ('v1:busy', 'busy', 'transient', $1::timestamptz, $1::timestamptz, 1, 0, $1::timestamptz)`
const FILL_SLICES = sql`
  INSERT INTO redrive.failure_tally (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at, first_job,
    sample_job, noticed)
  SELECT 'v1:busy', 'mail', 'send', '', at, g, 1, 0, at, gen_random_uuid(), gen_random_uuid(), true
  FROM generate_series(1, $2::integer) g, LATERAL (SELECT $1::timestamptz - g * interval '1 second' AS at) slice`

/** In one queue: so many fail and are to be retried, so many die, so many complete. */
async function end(
  db: Database,
  queue: string,
  ends: { retry?: number; dead?: number; completed?: number },
  failure = busy,
): Promise<void> {
  const { retry = 0, dead = 0, completed: done = 0 } = ends
  await enqueue(
    db,
    Array.from({ length: retry + dead + done }, () => aJob({ queue })),
    null,
  )
  const jobs = await take(db, await aSession(db), 1_000, queue)
  await settle(
    db,
    jobs.map((job, index) => {
      if (index < retry) return retried(job, 24 * HOUR, failure)
      return index < retry + dead ? buried(job, failure) : completed(job)
    }),
    '0',
  )
}

describe.each(EMBEDDED_AND_SERVER)('on $name', ({ open }) => {
  const story = async () => {
    const fresh = await open({ now: START })
    return { ...fresh, ...statistics({ db: fresh.db, wake: () => {} }) }
  }

  it('an empty ledger has nothing to tell', async () => {
    const { statistics, failureReasons } = await story()
    expect(await statistics()).toEqual({
      since: new Date(Date.parse(START) - 24 * HOUR),
      until: new Date(START),
      failures: 0,
      deaths: 0,
      exact: true,
      byKind: [],
      byService: [],
      byQueue: [],
      days: [],
    })
    expect(await failureReasons()).toMatchObject({ items: [], exact: true })
  })

  it('tells what failed, by kind, service and queue, and what fails most', async () => {
    const { db, clock, statistics, failureReasons } = await story()
    await end(db, 'mail', { retry: 2, dead: 1, completed: 3 })
    await end(db, 'news', { retry: 1 })
    await end(db, 'mail', { dead: 1 }, refused)
    clock.advance(60_000)
    expect(await statistics()).toMatchObject({
      failures: 5,
      deaths: 2,
      exact: true,
      byKind: [
        { kind: 'transient', failures: 4, deaths: 1, share: 0.8 },
        { kind: 'authentication', failures: 1, deaths: 1, share: 0.2 },
      ],
      byService: [
        { service: 'smtp', failures: 4 },
        { service: null, failures: 1 },
      ],
      byQueue: [
        { queue: 'mail', failures: 4, deaths: 2 },
        { queue: 'news', failures: 1 },
      ],
      days: [
        { queue: 'mail', completed: 3, cancelled: 0, failed: 4, dead: 2, successRate: 3 / 7 },
        { queue: 'news', completed: 0, failed: 1, successRate: 0 },
      ],
    })
    const { items } = await failureReasons()
    expect(items).toMatchObject([
      {
        group: 'v1:busy',
        title: 'HttpError: the mail server is busy',
        kind: 'transient',
        service: 'smtp',
        status: 'open',
        failures: 4,
        deaths: 1,
        share: 0.8,
        lastSeen: new Date(START),
        queues: ['mail', 'news'],
        sample: { errorType: 'HttpError', message: 'the mail server is busy', at: new Date(START) },
      },
      { group: 'v1:refused', failures: 1, share: 0.2 },
    ])
    const groups = async (filter: object) => (await failureReasons(filter)).items.map(({ group }) => group)
    expect(await groups({ queue: 'news' })).toEqual(['v1:busy'])
    expect(await groups({ kind: 'authentication' })).toEqual(['v1:refused'])
    expect(await groups({ service: 's3' })).toEqual([])
    expect(await groups({ limit: 1 })).toEqual(['v1:busy'])
  })

  it('counts within the range, slice by slice', async () => {
    const { db, clock, statistics } = await story()
    await end(db, 'mail', { retry: 1 })
    clock.advance(2 * HOUR)
    await end(db, 'mail', { retry: 2 })
    const at = (ms: number) => new Date(Date.parse(START) + ms)
    const failures = async (since: number, until: number) =>
      (await statistics({ since: at(since), until: at(until) })).failures
    expect(await failures(-HOUR, HOUR)).toBe(1)
    expect(await failures(HOUR, 3 * HOUR)).toBe(2)
    expect(await failures(-HOUR, 3 * HOUR)).toBe(3)
    expect(await failures(-2 * HOUR, -HOUR)).toBe(0)
    expect(await failures(3 * HOUR, 4 * HOUR)).toBe(0)
  })

  it('tells that not all was looked at, also when nothing of what was is to be told', async () => {
    const { db, failureReasons } = await story()
    await db.query(FILL_GROUP, [START])
    await db.query(FILL_SLICES, [START, SLICES])
    expect(await failureReasons()).toMatchObject({ items: [{ group: 'v1:busy', failures: SLICES }], exact: false })
    const none = [{ queue: 'news' }, { kind: 'authentication' as const }, { service: 's3' }]
    for (const filter of none) expect(await failureReasons(filter)).toMatchObject({ items: [], exact: false })
    await db.query(sql`DELETE FROM redrive.failure_tally WHERE shard = 1`)
    for (const filter of none) expect(await failureReasons(filter)).toMatchObject({ items: [], exact: true })
  })

  // As it is for a moment: counted, and its group is being made by another connection.
  it.each([1, SLICES])('what has no group yet is not told, and that is said (%i slices)', async slices => {
    const { db, clock, statistics, failureReasons } = await story()
    await db.query(FILL_SLICES, [START, slices])
    expect(await statistics()).toMatchObject({ failures: 0, byKind: [], byQueue: [], exact: false })
    expect(await failureReasons()).toMatchObject({ items: [], exact: false })
    await end(db, 'news', { retry: 1 }, refused)
    clock.advance(60_000)
    expect(await statistics()).toMatchObject({ failures: 1, byQueue: [{ queue: 'news' }], exact: false })
    expect(await failureReasons()).toMatchObject({ items: [{ group: 'v1:refused' }], exact: false })
    await db.query(FILL_GROUP, [START])
    const exact = slices < SLICES
    expect(await statistics()).toMatchObject({ failures: exact ? 2 : SLICES, exact })
    expect(await failureReasons()).toMatchObject({ items: [{}, {}], exact })
  })

  it.each<[string, object, RegExp]>([
    ['a time that is none', { since: new Date('x') }, /^since is Invalid Date/],
    ['a range that ends before it begins', { since: new Date(START), until: new Date(0) }, /^since is "2030/],
    ['an unknown filter', { queu: 'mail' }, /^A filter is "queu"/],
    ['an unknown kind', { kind: 'flaky' }, /^kind is "flaky"/],
    ['too many', { limit: 1_000 }, /^limit is 1000/],
  ])('refuses %s', async (_what, asked, message) => {
    const { failureReasons } = await story()
    await expect(failureReasons(asked)).rejects.toMatchObject({
      code: 'SETTING_INVALID',
      message: expect.stringMatching(message),
    })
  })
})
