// An enqueue hands a job to a session that stands by, claimed by the same commit; to nobody if nobody does, if others wait, if
// the queue is paused or the session is gone. What is said of it is what a claim would have brought.
import { describe, expect, it } from 'vitest'
import type { SessionId } from '../../src/domain/ids.js'
import type { ClaimedJob, NewJob } from '../../src/domain/job.js'
import { LIMITS } from '../../src/domain/limits.js'
import { heldBy, type Lane } from '../../src/ledger/claim.js'
import { type Database, type Queryable, sql } from '../../src/ledger/database.js'
import { canBeHandedOver, enqueue, enqueueOne } from '../../src/ledger/enqueue.js'
import { handOver, type Taker, takersOf } from '../../src/ledger/hand-over.js'
import { readMigrations } from '../../src/ledger/migrate.js'
import { inSchema } from '../../src/ledger/schema-name.js'
import { endSession } from '../../src/ledger/session.js'
import { settle } from '../../src/ledger/settle.js'
import { handedOver, stand, standBy } from '../../src/ledger/standby.js'
import { administer, beforeFirst, DATABASES, freshDatabase } from '../support/databases.js'
import { listening } from '../support/listening.js'
import { aJob, aSession, completed, take } from '../support/story.js'
import { until } from '../support/until.js'

const STANDING = sql`SELECT session_id::text AS session FROM redrive.standby ORDER BY spot`
const PAUSE = sql`
  INSERT INTO redrive.queue (name, paused_at) VALUES ($1, now()) ON CONFLICT (name) DO UPDATE SET paused_at = now()`

const standing = async (db: Database) => (await db.query<{ session: SessionId }>(STANDING)).map(row => row.session)
type Give = (db: Queryable, job: NewJob) => Promise<boolean>
const give: Give = async (db, job) => (await enqueueOne(db, job, 'all')) === 'to a worker'
const giveToKnown: Give = async (db, job) => {
  for (const taker of await takersOf(db, job)) if (await handOver(db, job, taker)) return true
  await enqueue(db, [job], null)
  return false
}
const WAYS = [
  { way: 'asked for with the job', give },
  { way: 'known before', give: giveToKnown },
]
const SERVERS = DATABASES.filter(({ kind }) => kind.startsWith('server'))
const EACH_WAY = SERVERS.flatMap(server => WAYS.map(way => ({ ...server, ...way })))

describe.each(EACH_WAY)('$name, who stands by is $way', ({ open, give }) => {
  let db: Database
  let queues = 0
  beforeFirst(async () => {
    db = (await open()).db
    await listening(db, 'mine')
  })
  /** A lane of its own for each test, and who stands by there. */
  const aLane = async (options: { leaseMs?: number } = {}) => {
    queues += 1
    const lane = { queue: `queue ${queues}`, name: 'send' }
    const session = await aSession(db, options.leaseMs)
    await standBy(db, session, 'mine', [lane])
    return { lane, session }
  }

  it('gives a job to the one who stands by', async () => {
    const { lane, session } = await aLane()
    const job = aJob({ ...lane, maxAttempts: 4, tenant: 'a', trace: '00-1' })
    expect(await give(db, job)).toBe(true)
    const [held] = await heldBy(db, session)
    expect(held).toMatchObject({ id: job.id, attempt: 1, maxAttempts: 4, tenant: 'a', trace: '00-1', suspect: false })
    expect(held?.waitingSince).toBe(held?.createdAt)
    expect(await take(db, await aSession(db), 10, lane.queue)).toEqual([])
    expect(await settle(db, [completed(held as ClaimedJob)], '1')).toEqual([])
  })

  it('puts it in line where nobody does, or nobody for jobs of that name', async () => {
    const { lane } = await aLane()
    expect(await give(db, aJob({ queue: 'nobody there' }))).toBe(false)
    expect(await give(db, aJob({ ...lane, name: 'another' }))).toBe(false)
    expect(await take(db, await aSession(db), 10, 'nobody there')).toHaveLength(1)
  })

  it('overtakes nobody who waits', async () => {
    const { lane, session } = await aLane()
    await enqueue(db, [aJob(lane)], null)
    expect(await give(db, aJob(lane))).toBe(false)
    expect(await take(db, session, 10, lane.queue)).toHaveLength(2)
    expect(await give(db, aJob(lane))).toBe(true)
  })

  it('gives nothing of a paused queue', async () => {
    const { lane } = await aLane()
    await db.query(PAUSE, [lane.queue])
    expect(await give(db, aJob(lane))).toBe(false)
  })

  it('gives nothing to a session that has ended or lapsed, and such a one stands by no more', async () => {
    const ended = await aLane()
    await endSession(db, ended.session)
    expect(await give(db, aJob(ended.lane))).toBe(false)
    await standBy(db, ended.session, 'mine', [ended.lane])
    expect(await standing(db)).not.toContain(ended.session)

    const lapsed = await aLane({ leaseMs: 1 })
    await until('its lease is over', async () => !(await give(db, aJob(lapsed.lane))))
  })

  it('gives nothing more to one who stood down', async () => {
    const { lane, session } = await aLane()
    await standBy(db, session, 'mine', [])
    expect(await give(db, aJob(lane))).toBe(false)
  })

  it('gives to one of several, wherever it begins to look', async () => {
    const { lane, session } = await aLane()
    const others = [await aSession(db), await aSession(db)]
    for (const other of others) await standBy(db, other, 'mine', [lane])
    for (let nth = 0; nth < 60; nth += 1) expect(await give(db, aJob(lane))).toBe(true)
    const shares = await Promise.all([session, ...others].map(async one => (await heldBy(db, one)).length))
    expect(shares.reduce((sum, share) => sum + share)).toBe(60)
  })

  it('tells of what a session has held for a while, of its lanes only', async () => {
    const { lane, session } = await aLane()
    const other = { queue: lane.queue, name: 'other' }
    await standBy(db, session, 'mine', [lane, other])
    const [here, there] = [aJob(lane), aJob(other)]
    await give(db, here)
    await give(db, there)
    const idsOf = async (lanes: readonly Lane[], ms = 0) =>
      (await stand(db, session, lanes, ms)).held.map(({ id }) => id)
    expect((await idsOf([lane, other])).sort()).toEqual([here.id, there.id].sort())
    expect(await idsOf([other])).toEqual([there.id])
    expect(await idsOf([lane], 60_000)).toEqual([])
    expect(await stand(db, await aSession(db), [lane], 0)).toEqual({ stands: false, held: [] })
  })

  it('gives nothing to one who has not said for a while that it is there', async () => {
    const { lane, session } = await aLane()
    await db.query(sql`UPDATE redrive.standby SET seen_at = now() - interval '6 seconds'`)
    expect(await give(db, aJob({ ...lane, name: 'send' }))).toBe(false)
    expect(await take(db, session, 10, lane.queue)).toHaveLength(1)
    expect(await stand(db, session, [lane], 60_000)).toMatchObject({ stands: true })
    expect(await give(db, aJob(lane))).toBe(true)
  })

  it('clears away who left without a word, when another comes', async () => {
    const { session } = await aLane()
    await db.query(sql`UPDATE redrive.standby SET seen_at = now() - interval '2 minutes'`)
    const next = await aLane()
    expect(await standing(db)).not.toContain(session)
    expect(await standing(db)).toContain(next.session)
  })

  it('overtakes nobody at the front, whatever runs at the end', async () => {
    const { lane, session } = await aLane()
    await enqueue(db, [aJob({ ...lane, priority: 0 })], null)
    expect(await take(db, session, 1, lane.queue)).toHaveLength(1)
    await enqueue(db, [aJob({ ...lane, priority: 5 })], null)
    expect(await give(db, aJob({ ...lane, priority: 5 }))).toBe(false)
    expect(await give(db, aJob({ ...lane, priority: 0 }))).toBe(false)
  })
})

describe('one who is known', () => {
  const LANE = { queue: 'mail', name: 'send' }
  async function aTaker(leaseMs?: number) {
    const fresh = await freshDatabase('server')
    const { db } = fresh
    await listening(fresh.another(), 'mine')
    const session = await aSession(db, leaseMs)
    await standBy(db, session, 'mine', [LANE])
    const [taker] = await takersOf(db, LANE)
    expect(taker).toEqual({ session, channel: 'mine' })
    return { ...fresh, session, taker: taker as Taker }
  }
  const COUNT = sql`SELECT count(*)::int AS count FROM redrive.job`

  it.each<[string, (known: Awaited<ReturnType<typeof aTaker>>) => Promise<unknown>]>([
    ['its queue was paused', ({ db }) => db.query(PAUSE, [LANE.queue])],
    ['its session has ended', ({ db, session }) => endSession(db, session)],
    ['it stood down', ({ db, session }) => standBy(db, session, 'mine', [])],
    ['it stands by for others', ({ db, session }) => standBy(db, session, 'mine', [{ ...LANE, name: 'other' }])],
    ['it listens elsewhere', ({ db, session }) => standBy(db, session, 'elsewhere', [LANE])],
    ['it fell silent', ({ db }) => db.query(sql`UPDATE redrive.standby SET seen_at = now() - interval '6 seconds'`)],
    ['its lease is over', ({ db }) => db.query(sql`UPDATE redrive.session SET expires_at = now()`)],
    [
      'it was cut off',
      async ({ url = '' }) => {
        const listeners = `FROM pg_stat_activity WHERE application_name = 'redrive listener'`
        await administer(url, `SELECT pg_terminate_backend(pid) ${listeners}`)
        await until('it is gone', async () => (await administer(url, `SELECT 1 ${listeners}`)).length === 0)
      },
    ],
  ])('is given nothing any more when %s', async (_, change) => {
    const known = await aTaker()
    const { db, taker } = known
    expect(await handOver(db, aJob(LANE), taker)).toBe(true)
    await change(known)
    expect(await handOver(db, aJob(LANE), taker)).toBe(false)
    expect(await db.query(COUNT), 'nothing was written').toEqual([{ count: 1 }])
  })

  it('is one of sixteen at most, and another time others', async () => {
    const { db } = await aTaker()
    for (let nth = 0; nth < 19; nth += 1) await standBy(db, await aSession(db), 'mine', [LANE])
    const seen = new Set<SessionId>()
    for (let nth = 0; nth < 60; nth += 1) {
      const takers = await takersOf(db, LANE)
      expect(new Set(takers.map(({ session }) => session)).size, 'each once').toBe(16)
      for (const { session } of takers) seen.add(session)
    }
    expect(seen.size).toBe(20)
  })
})

it('gives nothing to one who was cut off, from that moment on', async () => {
  const { db, url = '', another } = await freshDatabase('server')
  const lane = { queue: 'mail', name: 'send' }
  await standBy(db, await aSession(db), 'mine', [lane])
  expect(await give(db, aJob(lane))).toBe(false)
  await take(db, await aSession(db))
  await listening(another(), 'mine')
  expect(await give(db, aJob(lane))).toBe(true)
  await administer(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'redrive listener'`,
  )
  await until('its connection is gone', async () => !(await give(db, aJob(lane))))
})

it('gives to one who begins to listen while another hand-over looks whether he does', async () => {
  const { db, url = '', another } = await freshDatabase('server')
  const lane = { queue: 'mail', name: 'send' }
  await standBy(db, await aSession(db), 'mine', [lane])
  const begun = await db.transaction(async looking => {
    await looking.query(sql`SELECT pg_advisory_xact_lock_shared(hashtextextended('mine', 0))`)
    const listens = listening(another(), 'mine')
    await until('it waits', async () => {
      const waiting = await administer(url, `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
      return waiting.length > 0
    })
    return { listens }
  })
  await begun.listens
  expect(await give(db, aJob(lane))).toBe(true)
})

it('nobody can read the name of a channel in what the server shows of statements', async () => {
  const { db, url = '' } = await freshDatabase('server')
  await listening(db, 'a_secret_name')
  const shown = await administer(url, `SELECT query FROM pg_stat_activity WHERE application_name = 'redrive listener'`)
  expect(shown.length).toBeGreaterThan(0)
  expect(JSON.stringify(shown)).not.toContain('a_secret_name')
})

describe('what is said of a job', () => {
  const ODD = `a\u001eb\u001fc,"d" '' \\ \n null \u0001`

  it.each(WAYS)('is what a claim would bring, whatever is in it, to one who is $way', async ({ give }) => {
    const { db } = await freshDatabase('server')
    const session = await aSession(db)
    const lane = { queue: 'mail', name: 'send' }
    const said = await listening(db, 'mine')
    await standBy(db, session, 'mine', [lane])
    const told = { tenant: ODD, user: `${ODD}2`, project: `${ODD}3`, trace: `${ODD}4` }
    const payloadText = JSON.stringify({ odd: ODD, list: [1, null, '👩‍👩‍👧‍👦'] })
    await give(db, aJob({ ...told, service: 'mail, "smtp"', maxAttempts: 7, priority: 9, payloadText }))
    await give(db, aJob({ tenant: 'a' }))
    await give(db, aJob())
    await until('they are heard', () => said.length === 3)
    const handed = said.map(handedOver)
    expect(handed.map(each => each?.session)).toEqual([session, session, session])
    expect(handed.map(each => each?.job)).toEqual(await heldBy(db, session))
    expect(handed[0]?.job).toMatchObject({ ...told, payloadText, priority: 9 })
  })

  it.each(WAYS)('fits into a NOTIFY, or the job is not handed over, to one who is $way', async ({ give }) => {
    const { db } = await freshDatabase('server')
    await listening(db, 'mine')
    const lane = { queue: 'q'.repeat(LIMITS.nameChars), name: 'n'.repeat(LIMITS.nameChars) }
    await standBy(db, await aSession(db), 'mine', [lane])
    const longest = (payload: string, text: string) => {
      const job = (length: number) =>
        aJob({ ...lane, payloadText: JSON.stringify(payload.repeat(length)), tenant: text.repeat(200), service: 's' })
      let length = 0
      while (canBeHandedOver(job(length + 1))) length += 1
      return job(length)
    }
    for (const job of [longest('x', 'x'), longest('€', '€'), longest('𝄞', '\u0001'), longest('"', '"')]) {
      expect(await give(db, job)).toBe(true)
    }
  })

  it.each<[string, Partial<NewJob>]>([
    ['is due later', { delayMs: 1 }],
    ['is due at a time', { runAt: '2030-01-01T00:00:00.000Z' }],
    ['has a unique key', { uniqueKey: 'a' }],
    ['is long', { payloadText: `"${'x'.repeat(1_900)}"` }],
    ['lies apart', { payloadText: `"${'x'.repeat(2_000)}"` }],
    ['has long names', { tenant: 't'.repeat(512), user: 'u'.repeat(512), project: 'p'.repeat(512) }],
  ])('is nothing if it %s', (_, job) => {
    expect(canBeHandedOver(aJob(job))).toBe(false)
    expect(canBeHandedOver(aJob())).toBe(true)
  })
})

it('a role that could enqueue before can hand over', async () => {
  const { db, url = '' } = await freshDatabase('server', { migrated: false })
  const role = `redrive_test_hand_${process.pid}`
  await administer(url, `CREATE ROLE ${role}`)
  try {
    await db.transaction(async tx => {
      await tx.execute('CREATE SCHEMA redrive')
      for (const { version, text } of await readMigrations()) {
        if (version === 18) {
          await tx.execute(`GRANT USAGE ON SCHEMA redrive TO ${role}; GRANT SELECT, INSERT ON redrive.job TO ${role};
            GRANT USAGE ON SEQUENCE redrive.job_seq TO ${role}`)
        }
        await tx.execute(inSchema(text, db.schema))
      }
    })
    const lane = { queue: 'mail', name: 'send' }
    await listening(db, 'mine')
    await standBy(db, await aSession(db), 'mine', [lane])
    await db.transaction(async tx => {
      await tx.execute(`SET LOCAL ROLE ${role}`)
      expect(await enqueueOne(tx, aJob(lane), 'all')).toBe('to a worker')
      expect(await enqueueOne(tx, aJob({ ...lane, name: 'another' }), 'all')).toBe('in line')
      expect(await giveToKnown(tx, aJob(lane))).toBe(true)
    })
  } finally {
    await administer(url, `DROP OWNED BY ${role}`)
    await administer(url, `DROP ROLE ${role}`)
  }
})
