// pitfall 24: no statement on the live table may need statistics to find its way. The table is large and was never
// analyzed; every statement that workers and recovery run often is planned on it, as the ledger itself sends it. What is
// in functions was planned, once and for all, while the table was still empty: there the pages are counted.
import { describe, expect, it } from 'vitest'
import { newJobId, type SessionId } from '../../src/domain/ids.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import { cancelAsked, cancelJob } from '../../src/ledger/cancel.js'
import { claim, markStarted } from '../../src/ledger/claim.js'
import { type Database, type Param, type Piece, type Statement, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob, saveProgress } from '../../src/ledger/job.js'
import { promote } from '../../src/ledger/promote.js'
import { redrive } from '../../src/ledger/redrive.js'
import { forgetAttempts, forgetPayloads } from '../../src/ledger/retention.js'
import { renewSession } from '../../src/ledger/session.js'
import { settle } from '../../src/ledger/settle.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'
import { aJob, aSession, buried, cancelled, completed, retried, sentBack, take } from '../support/story.js'

const EACH = 200_000
/** More than any statement here is asked for, and far less than there is. */
const FEW = 1_000

const FILL = sql`
  INSERT INTO redrive.job (id, in_line, state, queue, name, payload, run_at, created_at, attempt)
  SELECT gen_random_uuid(), $2 = 'waiting', $2::redrive.job_state, 'mail', 'send', '{}', now() + $3::interval, now(), 0
  FROM generate_series(1, $1::integer)`
// Some of them wait in line.
const FILL_PAYLOADS = sql`
  INSERT INTO redrive.payload (id, body) SELECT gen_random_uuid(), '{}' FROM generate_series(1, $1::integer)`
const FILL_LARGE = sql`
  INSERT INTO redrive.job (id, state, queue, name, run_at, created_at)
  SELECT id, 'waiting', 'mail', 'large', now(), now() FROM redrive.payload WHERE body = '{}' LIMIT $1::integer`
const ANALYZED = sql`
  SELECT count(*)::integer AS columns FROM pg_statistic s WHERE s.starelid = to_regclass('redrive.job')`

/** What moving a hundred jobs touches, several times over; a scan of the table or of its line touches ten times more. */
const FEW_PAGES = 3_000
const IN_A_FUNCTION =
  /redrive\.(?:enqueue|enqueue_apart|enqueue_list|draw|draw_lanes|finish|bury|defer|promote|send_back)\(/

interface Node {
  readonly 'Node Type': string
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly 'Relation Name'?: string
  readonly 'Actual Loops': number
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Node[]
}

const flat = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flat)]

const rowsLookedAt = (node: Node) =>
  node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0))

class RolledBack extends Error {}

/** A database that tries each statement first, in a transaction it takes back, and notes how it went about it. */
function recording(db: Database) {
  const onLiveTable: Node[] = []
  const seen = { pages: 0, functions: 0 }
  const explain = (statement: Statement, params: readonly Param[]) =>
    db
      .transaction(async tx => {
        const text = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement.text}`
        const [row] = await tx.query<{ 'QUERY PLAN': { Plan: Node }[] }>({ text }, params)
        for (const { Plan } of row?.['QUERY PLAN'] ?? []) {
          seen.pages += Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
          onLiveTable.push(...flat(Plan).filter(node => node['Relation Name'] === 'job'))
        }
        throw new RolledBack()
      })
      .catch(error => {
        if (!(error instanceof RolledBack)) throw error
      })
  const query = async <Row>(statement: Statement, params: readonly Param[] = []) => {
    if (IN_A_FUNCTION.test(statement.text)) seen.functions += 1
    await explain(statement, params)
    return db.query<Row>(statement, params)
  }
  const together = async (pieces: readonly Piece[]) => {
    for (const { statement, params } of pieces.map(piece => piece())) await query(statement, params as readonly Param[])
  }
  const each = async <Row>(statement: Statement, params: readonly Param[], onRow: (row: Row) => void) => {
    for (const row of await query<Row>(statement, params)) onRow(row)
  }
  return { db: { ...db, query, each, together } satisfies Database, onLiveTable, seen }
}

const aLargeJob = () => aJob({ name: 'large', payloadText: `"${'x'.repeat(3_000)}"` })

/** Stops what goes on in parts after its first. */
const firstPartOf = (db: Database): Database => {
  let asked = false
  const query = async <Row>(statement: Statement, params?: readonly Param[]) => {
    const rows = asked ? [] : await db.query<Row>(statement, params)
    asked = true
    return rows
  }
  return { ...db, query }
}

/** A few calls of each function, by the one connection that all of this runs on, while there is nothing to see. */
async function planAll(db: Database): Promise<void> {
  const session = await aSession(db, 3_600_000)
  for (let call = 0; call < 7; call += 1) {
    await enqueue(db, [aJob()], 'channel')
    await enqueue(db, [aJob({ tenant: 'a' })], 'channel')
    await enqueue(db, [aJob(), aJob()], 'channel')
    await enqueue(db, [aJob({ tenant: 'a' }), aJob()], 'channel')
    await enqueue(db, [aLargeJob()], 'channel')
    await enqueue(db, [aLargeJob(), aJob({ name: 'large' })], 'channel')
    await take(db, session, 10, 'mail', 'large')
    const jobs = await take(db, session, 10)
    await claim(
      db,
      session,
      ['send', 'receive'].map(name => ({ queue: 'mail', name, limit: 50 })),
      100,
    )
    const [first, second, ...others] = jobs
    if (!(first && second)) throw new Error('two jobs were to be claimed')
    await settle(db, [...others.map(job => completed(job)), retried(first, 3_600_000), buried(second)], '1')
    await promote(db, 10, 'channel')
  }
}

describe('pitfall 24: on 400,000 live jobs that were never analyzed', () => {
  let db: Database
  let session: SessionId
  let held: ClaimedJob[]

  beforeFirst(async () => {
    db = (await freshDatabase('server')).db
    await db.query(sql`ALTER TABLE redrive.job SET (autovacuum_enabled = false)`)
    await planAll(db)
    await db.query(FILL, [EACH, 'waiting', '0'])
    await db.query(FILL, [EACH, 'retrying', '1 hour'])
    await db.query(FILL_PAYLOADS, [EACH])
    await db.query(FILL_LARGE, [FEW])
    session = await aSession(db, 3_600_000)
    held = await take(db, session, 500)
  })

  const batch = (from: number) => held.slice(from, from + 50)

  it.each<[string, (db: Database) => Promise<unknown>]>([
    ['claim from one lane', db => take(db, session, 100)],
    [
      'claim from several lanes',
      db =>
        claim(
          db,
          session,
          ['send', 'receive', 'forward'].map(name => ({ queue: 'mail', name, limit: 50 })),
          100,
        ),
    ],
    ['claim jobs whose payloads lie apart', db => take(db, session, 100, 'mail', 'large')],
    ['promote', db => promote(db, 500, 'channel')],
    [
      'complete',
      db =>
        settle(
          db,
          batch(0).map(job => completed(job)),
          '1',
        ),
    ],
    [
      'complete where the place is not known',
      db =>
        settle(
          db,
          batch(250).map(job => ({ ...completed(job), receipt: undefined })),
          '1',
        ),
    ],
    [
      'retry',
      db =>
        settle(
          db,
          batch(50).map(job => retried(job)),
          '1',
        ),
    ],
    [
      'bury',
      db =>
        settle(
          db,
          batch(100).map(job => buried(job)),
          '1',
        ),
    ],
    [
      'retry where the place is not known',
      db =>
        settle(
          db,
          batch(300).map(job => ({ ...retried(job), receipt: undefined })),
          '1',
        ),
    ],
    [
      'bury where the place is not known',
      db =>
        settle(
          db,
          batch(350).map(job => ({ ...buried(job), receipt: undefined })),
          '1',
        ),
    ],
    [
      'cancel as the handler says',
      db =>
        settle(
          db,
          batch(150).map(job => cancelled(job)),
          '1',
        ),
    ],
    [
      'complete a single job',
      db =>
        settle(
          db,
          held.slice(200, 201).map(job => completed(job)),
          '1',
        ),
    ],
    [
      'retry a single job',
      db =>
        settle(
          db,
          held.slice(201, 202).map(job => retried(job)),
          '1',
        ),
    ],
    ['note a start', db => markStarted(db, held[210] as ClaimedJob)],
    ['save progress', db => saveProgress(db, (held[211] as ClaimedJob).id, (held[211] as ClaimedJob).lease, '1')],
    ['enqueue one', db => enqueue(db, [aJob()], 'channel')],
    ['enqueue several', db => enqueue(db, [aJob(), aJob()], 'channel')],
    ['enqueue some with wishes', db => enqueue(db, [aJob({ tenant: 'a' }), aJob()], 'channel')],
    ['enqueue a large one', db => enqueue(db, [aLargeJob()], 'channel')],
    ['enqueue several large ones', db => enqueue(db, [aLargeJob(), aLargeJob()], 'channel')],
    ['enqueue with unique keys', db => enqueue(db, [aJob({ uniqueKey: 'a' }), aJob({ uniqueKey: 'b' })], 'channel')],
    ['renew a lease', db => renewSession(db, session, 3_600_000)],
    ['find jobs asked to be cancelled', db => cancelAsked(db)],
    ['cancel an idle job', db => cancelJob(db, newJobId(), 'no')],
    ['redrive', db => redrive(db, [newJobId(), newJobId()], 'channel')],
    ['redrive those without a key', db => sentBack(db, [newJobId()])],
    ['look a job up', db => findJob(db, newJobId())],
    ['forget old attempts', db => forgetAttempts(db, 1_000, 100)],
    ['forget old payloads', db => forgetPayloads(firstPartOf(db), -3_600_000, 100)],
  ])('%s reads no job it does not need', async (_what, act) => {
    const { db: recorded, onLiveTable, seen } = recording(db)
    await act(recorded)
    expect(onLiveTable.length + seen.functions, 'the statement touches the live table').toBeGreaterThan(0)
    expect(seen.pages).toBeLessThan(FEW_PAGES)
    expect(onLiveTable.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
    expect(onLiveTable.filter(node => rowsLookedAt(node) > FEW)).toEqual([])
    expect((await db.query<{ columns: number }>(ANALYZED))[0], 'still never analyzed').toEqual({ columns: 0 })
  })
})
