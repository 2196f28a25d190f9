// Groups as the ledger keeps them: counted by the statements that record failures, made from the counts by whoever looks
// next, told of once.
import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/domain/failure.js'
import type { SessionId } from '../../src/domain/ids.js'
import { readAudit } from '../../src/ledger/audit.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { getGroup, listGroups } from '../../src/ledger/group.js'
import { changeGroup, lockGroups, pointGroups, recountGroup } from '../../src/ledger/group-change.js'
import { groupDetail } from '../../src/ledger/group-detail.js'
import { membersOf } from '../../src/ledger/group-members.js'
import { makeGroups, noticeFailures, noticeMissed } from '../../src/ledger/group-notice.js'
import { tidyGroups } from '../../src/ledger/group-retention.js'
import { ensureQueues } from '../../src/ledger/queue.js'
import { openSession } from '../../src/ledger/session.js'
import { settlingShard } from '../../src/ledger/settle/tally.js'
import { settle } from '../../src/ledger/settle.js'
import { freshDatabase } from '../support/databases.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aFailure, aJob, buried, cancelled, ended, retried, take } from '../support/story.js'

const worker = (db: Database, version: string | null = null): Promise<SessionId> =>
  openSession(db, { worker: 'w', host: 'h', pid: 1, version, queues: ['mail'], concurrency: 1, leaseMs: 600_000 })

const caused = (fingerprint: string, more: Partial<Failure> = {}) =>
  aFailure({ fingerprint, type: 'HttpError', message: `it is ${fingerprint}\nand more`, ...more })

/** So many jobs, each claimed; in a queue and for a tenant. */
async function claimed(db: Database, session: SessionId, count: number, queue = 'mail', tenant?: string) {
  await ensureQueues(db, [queue])
  const jobs = Array.from({ length: count }, () => aJob({ queue, ...(tenant && { tenant }) }))
  await enqueue(db, jobs, null)
  return take(db, session, count, queue)
}

const lane = (session: SessionId, number = 0) => settlingShard(session, number)

const ids = async (db: Database, filter = {}, sort: 'lastSeen' | 'failures' = 'lastSeen') =>
  (await listGroups(db, filter, { limit: 50, sort })).items.map(({ id }) => id)

describe.each(EMBEDDED_AND_SERVER)('$name', ({ open }) => {
  it('counts are exact, whoever settled what, in whichever lane, version and queue', async () => {
    const { db, clock } = await open({ now: '2031-05-01T10:00:00.000Z' })
    const [one, two] = [await worker(db, '1.0'), await worker(db, '2.0')]
    const first = await claimed(db, one, 6, 'mail', 'acme')
    const second = await claimed(db, two, 3, 'post', 'umbra')
    await settle(
      db,
      first.slice(0, 2).map(job => buried(job, caused('busy'))),
      lane(one, 0),
    )
    await settle(
      db,
      first.slice(2, 4).map(job => retried(job, 60_000, caused('busy'))),
      lane(one, 1),
    )
    await settle(
      db,
      [
        retried(first[4] as never, 0, caused('gone', { kind: 'permanent', service: 's3' })),
        cancelled(first[5] as never),
      ],
      lane(one, 0),
    )
    clock.advance(1_000)
    await settle(
      db,
      second.map(job => buried(job, caused('busy'))),
      lane(two),
    )

    expect((await noticeFailures(db, ['busy'])).map(({ what, id, version }) => [what, id, version])).toEqual([
      ['new', 'busy', '1.0'],
      ['new', 'gone', '1.0'],
    ])
    expect(await getGroup(db, 'busy')).toMatchObject({
      title: 'HttpError: it is busy',
      kind: 'transient',
      status: 'open',
      regressed: false,
      failures: 7,
      deaths: 5,
      dead: { value: 5, exact: true },
      retrying: { value: 2, exact: true },
      firstVersion: '1.0',
      firstSeen: new Date('2031-05-01T10:00:00Z'),
      lastSeen: new Date('2031-05-01T10:00:01Z'),
    })
    expect(await getGroup(db, 'gone')).toMatchObject({ failures: 1, deaths: 0, retrying: { value: 0 }, service: 's3' })
    expect(await groupDetail(db, 'busy')).toMatchObject({
      queues: [
        { value: 'mail', count: 4 },
        { value: 'post', count: 3 },
      ],
      names: [{ value: 'send', count: 7 }],
      versions: [
        { value: '1.0', count: 4 },
        { value: '2.0', count: 3 },
      ],
      tenants: [
        { value: 'acme', count: 4 },
        { value: 'umbra', count: 3 },
      ],
    })
    const { perMinute, samples } = await groupDetail(db, 'busy')
    expect(perMinute).toBeCloseTo(7 / (15 + 1 / 60), 5)
    expect(samples.map(({ version }) => version)).toEqual(['2.0', '2.0', '1.0', '1.0', '1.0'])
    expect(new Set(samples.map(({ message }) => message))).toEqual(new Set(['it is busy\nand more']))
  })

  it('a refused end counts nothing', async () => {
    const { db } = await open()
    const session = await worker(db)
    const [job] = await claimed(db, session, 1)
    const end = buried(job as never, caused('busy'))
    expect(await settle(db, [end, { ...end }], lane(session))).toHaveLength(1)
    expect(await settle(db, [end], lane(session))).toEqual([end])
    await noticeFailures(db, ['busy'])
    expect(await getGroup(db, 'busy')).toMatchObject({ failures: 1, deaths: 1 })
  })

  it('is listed by what failed last or most, by filters, page by page', async () => {
    const { db, clock } = await open({ now: '2031-05-01T10:00:00.000Z' })
    const session = await worker(db)
    for (const [nth, count] of [3, 1, 2].entries()) {
      clock.advance(1_000)
      const jobs = await claimed(db, session, count, nth === 1 ? 'post' : 'mail')
      const failure = caused(`g${nth}`, nth === 2 ? { kind: 'validation', service: 's3' } : {})
      await settle(
        db,
        jobs.map(job => buried(job, failure)),
        lane(session),
      )
    }
    await makeGroups(db)
    expect(await ids(db)).toEqual(['g2', 'g1', 'g0'])
    expect(await ids(db, {}, 'failures')).toEqual(['g0', 'g2', 'g1'])
    expect(await ids(db, { queue: 'post' })).toEqual(['g1'])
    expect(await ids(db, { kind: 'validation', service: 's3' })).toEqual(['g2'])
    expect(await ids(db, { text: 'IT IS G0' })).toEqual(['g0'])
    expect(await ids(db, { status: 'resolved' })).toEqual([])
    for (const sort of ['lastSeen', 'failures'] as const) {
      const seen: string[] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page = await listGroups(db, {}, { limit: 2, sort, ...(cursor && { cursor }) })
        seen.push(...page.items.map(({ id }) => id))
        cursor = page.nextCursor
      }
      expect(seen).toEqual(await ids(db, {}, sort))
    }
  })

  it('a resolved group that fails again is regressed, once, and only by what happened after', async () => {
    const { db, clock } = await open({ now: '2031-05-01T10:00:00.000Z' })
    const [old, fixed] = [await worker(db, '1.0'), await worker(db, '1.1')]
    const fail = async (session: SessionId) => {
      const [job] = await claimed(db, session, 1)
      await settle(db, [buried(job as never, caused('busy'))], lane(session))
    }
    await fail(old)
    await makeGroups(db)
    const [earlier] = await claimed(db, old, 1)
    clock.advance(1_000)
    await settle(db, [buried(earlier as never, caused('busy'))], lane(old))
    clock.advance(1_000)
    await db.transaction(async tx => {
      await lockGroups(tx, ['busy'])
      await changeGroup(tx, 'busy', { status: 'resolved', notes: 'fixed in 1.1' }, 'ada')
    })
    expect(await noticeFailures(db, ['busy']), 'what failed before is noticed after').toMatchObject([{ what: 'new' }])
    expect(await getGroup(db, 'busy')).toMatchObject({ status: 'resolved', resolvedBy: 'ada', failures: 2 })
    clock.advance(1_000)
    await fail(fixed)
    const told = await Promise.all([noticeFailures(db, ['busy']), noticeFailures(db, ['busy']), noticeMissed(db)])
    expect(told.flat()).toEqual([
      { what: 'regressed', id: 'busy', title: 'HttpError: it is busy', kind: 'transient', version: '1.1' },
    ])
    const group = await getGroup(db, 'busy')
    expect(group).toMatchObject({
      status: 'open',
      regressed: true,
      regressedVersion: '1.1',
      regressedAt: new Date('2031-05-01T10:00:03Z'),
      regressions: 1,
      notes: 'fixed in 1.1',
    })
    expect(group).not.toHaveProperty('resolvedAt')
    expect(await ids(db, { regressed: true })).toEqual(['busy'])
    await changeGroup(db, 'busy', { status: 'muted' }, 'ada')
    clock.advance(1_000)
    await fail(fixed)
    expect(await noticeFailures(db, ['busy'])).toEqual([])
    expect(await getGroup(db, 'busy')).toMatchObject({ status: 'muted', regressed: false, failures: 4 })
  })

  it('what its process could not say any more, recovery says', async () => {
    const { db } = await open()
    const session = await worker(db)
    const [a, b] = await claimed(db, session, 2)
    await settle(db, [buried(a as never, caused('busy'))], lane(session))
    await noticeFailures(db, ['busy'])
    await settle(db, [buried(b as never, caused('busy'))], lane(session))
    const [lost] = await claimed(db, session, 1)
    const outcome = { type: 'lost', failure: caused('lost', { kind: 'lost' }) } as const
    await settle(db, [ended(lost as never, outcome, { type: 'bury', reason: 'poison' })], '0')
    expect(await noticeMissed(db)).toMatchObject([{ what: 'new', id: 'lost' }])
    expect(await getGroup(db, 'busy')).toMatchObject({ failures: 2, deaths: 2 })
    expect(await noticeMissed(db)).toEqual([])
  })

  it('counts are folded as they age, and stay what they were', async () => {
    const { db, clock } = await open({ now: '2031-05-01T10:00:00.000Z' })
    const fail = async (count: number) => {
      const session = await worker(db, '1.0')
      const jobs = await claimed(db, session, count)
      await settle(
        db,
        jobs.map(job => retried(job, 0, caused('busy'))),
        lane(session),
      )
    }
    const rows = async () =>
      (await db.query<{ rows: number }>(sql`SELECT count(*)::integer AS rows FROM redrive.failure_tally`))[0]?.rows
    for (let hour = 0; hour < 30; hour += 1) {
      await fail(2)
      clock.advance(3_600_000)
    }
    expect(await rows()).toBe(30)
    await tidyGroups(db, 7, async () => {})
    expect(await rows(), 'two days, and the last hours').toBe(5)
    clock.advance(40 * 86_400_000)
    await fail(1)
    await tidyGroups(db, 7, async () => {})
    expect(await rows(), 'all that is old, and what is new').toBe(2)
    await noticeFailures(db, ['busy'])
    expect(await getGroup(db, 'busy')).toMatchObject({ failures: 61, firstSeen: new Date('2031-05-01T10:00:00Z') })
    expect(await groupDetail(db, 'busy')).toMatchObject({
      queues: [{ count: 61 }],
      versions: [{ value: '1.0', count: 61 }],
    })
  })

  it('what nobody touched and left nothing behind is forgotten after a season, with a note; the rest stays', async () => {
    const { db, clock } = await open({ now: '2031-05-01T10:00:00.000Z' })
    const session = await worker(db)
    for (const name of ['dead', 'gone', 'noted', 'waits']) {
      const [job] = await claimed(db, session, 1)
      const end =
        name === 'dead'
          ? buried(job as never, caused(name))
          : retried(job as never, name === 'waits' ? 1e10 : 0, caused(name))
      await settle(db, [end], lane(session))
      if (end.decision.type === 'retry' && name !== 'waits')
        await settle(
          db,
          (await take(db, session)).map(again => cancelled(again)),
          lane(session),
        )
    }
    await makeGroups(db)
    await changeGroup(db, 'noted', { notes: 'seen at the fair' }, 'ada')
    clock.advance(91 * 86_400_000)
    await tidyGroups(db, 100, async () => {})
    expect((await ids(db)).sort()).toEqual(['dead', 'noted', 'waits'])
    expect(await readAudit(db, { targetType: 'group', target: 'untouched', limit: 5 })).toMatchObject([
      { actor: 'retention', action: 'forget', after: { removed: 1 } },
    ])
  })

  it('merged groups count as one, and apart again when split', async () => {
    const { db } = await open()
    const session = await worker(db)
    for (const [name, count] of [
      ['a', 1],
      ['b', 2],
      ['c', 4],
    ] as const) {
      const jobs = await claimed(db, session, count)
      await settle(
        db,
        jobs.map(job => buried(job, caused(name))),
        lane(session),
      )
    }
    await makeGroups(db)
    await pointGroups(db, ['b', 'c'], 'a')
    await recountGroup(db, 'a')
    expect(await ids(db)).toEqual(['a'])
    expect(await getGroup(db, 'c')).toMatchObject({ id: 'a', failures: 7, dead: { value: 7, exact: true } })
    expect((await membersOf(db, 'b')).sort()).toEqual(['a', 'b', 'c'])
    await changeGroup(db, 'a', { status: 'resolved' }, 'ada')
    const [job] = await claimed(db, session, 1)
    await settle(db, [buried(job as never, caused('c'))], lane(session))
    expect((await noticeFailures(db, ['c'])).filter(({ what }) => what === 'regressed')).toMatchObject([{ id: 'a' }])
    await pointGroups(db, ['c'], null)
    for (const id of ['a', 'c']) await recountGroup(db, id)
    expect(await getGroup(db, 'a')).toMatchObject({ failures: 3, status: 'open', regressed: true })
    expect(await getGroup(db, 'c')).toMatchObject({ id: 'c', failures: 5, status: 'open', regressed: false })
  })
})

it('lanes that meet the same new causes in different orders never wait for each other in a circle', async () => {
  const { db, another } = await freshDatabase('server')
  const doors = [db, another(), another(), another()]
  const sessions = await Promise.all(doors.map(door => worker(door)))
  const causes = Array.from({ length: 20 }, (_, nth) => `cause ${nth}`)
  const ROUNDS = 15
  await Promise.all(
    doors.map(async (door, nth) => {
      const session = sessions[nth] as SessionId
      for (let round = 0; round < ROUNDS; round += 1) {
        const order = nth % 2 === 0 ? causes : [...causes].reverse()
        const jobs = await claimed(door, session, order.length, `q${nth}`)
        // Half of them in the shard that all share, as rescued jobs are.
        await settle(
          door,
          jobs.map((job, at) => buried(job, caused(`${order[at]} of ${round}`))),
          nth < 2 ? '0' : lane(session),
        )
        await noticeFailures(
          door,
          order.map(cause => `${cause} of ${round}`),
        )
      }
    }),
  )
  const [total] = await db.query<{ groups: number; failures: number }>(
    sql`SELECT count(*)::integer AS groups, sum(failures)::integer AS failures FROM redrive.failure_group`,
  )
  expect(total).toEqual({ groups: causes.length * ROUNDS, failures: causes.length * ROUNDS * doors.length })
})
