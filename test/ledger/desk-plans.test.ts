// pitfalls 19 and 24 at the desk: whatever is asked of many dead letters, a page reads no more of them than it may, by an
// index, whether the table was ever analyzed or not. Rows are counted, not time.
import { describe, expect, it } from 'vitest'
import { type JobId, newJobId } from '../../src/domain/ids.js'
import { type Database, type Param, type Statement, sql } from '../../src/ledger/database.js'
import { countDeadLetters, listDeadLetters } from '../../src/ledger/dead-letter.js'
import type { Sought } from '../../src/ledger/dead-letter-search.js'
import { freeze, freezeInBatches, preview, redrive } from '../../src/ledger/redrive.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'
import { explaining, type PlanNode } from '../support/explaining.js'
import { sentBack } from '../support/story.js'

const MANY = 60_000
/** What a page may look at, and a few more: a branch looks one ahead. */
const MOST_READ = 10_100

/** Three letters, their indexes and three jobs; a scan of all letters touches several thousand. */
const FEW_PAGES = 500

interface Buffers {
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
}

const FILL = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, status, resolved_at, outcome, kind, queue, name, payload, reason, message, fingerprint, service, assigned_to)
  SELECT gen_random_uuid(), g, timestamptz '2030-01-01' + g * interval '1 second', now(), now(), 1, 0, 0, 5,
    CASE WHEN g % 4 = 0 THEN 'recovered' ELSE 'pending' END::redrive.recovery_status, CASE WHEN g % 4 = 0 THEN now() END,
    'failed', CASE WHEN rare THEN 'lost' ELSE 'network' END::redrive.failure_kind, CASE WHEN rare THEN 'rare' ELSE 'mail' END,
    CASE WHEN rare THEN 'rare' ELSE 'send' END, '{}', 'over', 'order ' || g || ' was refused',
    CASE WHEN rare THEN 'v1:rare' ELSE 'v1:many' END, CASE WHEN rare THEN 'rare' ELSE 'smtp' END,
    CASE WHEN rare THEN 'ada' WHEN g % 2 = 0 THEN 'ben' END
  FROM (SELECT g, g % 20000 = 7 AS rare FROM generate_series(1, $1::integer) g) numbers`

/** Causes that left no dead letter, with all that a text can hold. */
const ABSENT = Array.from({ length: 15 }, (_, nth) => `v1:"none\\ {,} ${nth}`)

const FILTERS: [string, Sought, matching: number | 'many'][] = [
  ['nothing', {}, 'many'],
  ['a status', { status: 'pending' }, 'many'],
  ['a status that none has', { status: 'redriving' }, 0],
  ['a queue', { queue: 'mail' }, 'many'],
  ['a rare queue', { queue: 'rare' }, 3],
  ['a queue and a status', { queue: 'mail', status: 'recovered' }, 'many'],
  ['a rare name', { name: 'rare' }, 3],
  ['a rare kind', { kind: 'lost' }, 3],
  ['a rare kind of a large queue', { kind: 'lost', queue: 'mail' }, 0],
  ['a rare name of a large queue', { name: 'rare', queue: 'mail' }, 0],
  ['a rare group', { fingerprint: 'v1:rare' }, 3],
  ['a rare service of a large group', { service: 'rare', fingerprint: 'v1:many' }, 0],
  ['a group of two causes', { fingerprints: ['v1:rare', 'v1:many'] }, 'many'],
  ['a rare group of many causes', { fingerprints: ['v1:rare', ...ABSENT] }, 3],
  ['a rare group of a large queue', { fingerprints: ['v1:rare', ...ABSENT], queue: 'mail' }, 0],
  ['an assignee', { assignedTo: 'ada' }, 3],
  ['an assignee, a large group and a text', { assignedTo: 'ada', fingerprint: 'v1:rare', text: 'REFUSED' }, 3],
  ['a time', { since: new Date('2030-01-01T00:00:01Z'), until: new Date('2030-01-01T00:00:04Z') }, 3],
  ['a time of a queue', { queue: 'mail', until: new Date('2030-01-01T00:00:04Z') }, 3],
  ['a text that many have', { text: 'Refused' }, 'many'],
  ['a text that none has', { text: 'needle' }, 0],
]

const LETTERS = ['dead_letter']

describe.each(['never analyzed', 'analyzed'] as const)('pitfall 24: 60,000 dead letters, %s', state => {
  let db: Database
  beforeFirst(async () => {
    db = (await freshDatabase('server')).db
    await db.query(sql`ALTER TABLE redrive.dead_letter SET (autovacuum_enabled = false)`)
    await db.query(FILL, [MANY])
    if (state === 'analyzed') await db.query(sql`ANALYZE redrive.dead_letter`)
  })

  it.each(FILTERS)('a page by %s', async (_what, filter, matching) => {
    const desk = explaining(db, LETTERS)
    const page = await listDeadLetters(desk.db, filter, { limit: 50 })
    expect(page.items).toHaveLength(matching === 'many' ? 50 : matching)
    expect(desk.reads.length).toBeGreaterThan(0)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(MOST_READ)
    const places = page.items.map(({ diedAt }) => diedAt.getTime())
    expect(places).toEqual([...places].sort((a, b) => b - a))
  })

  it.each(FILTERS)('their number by %s', async (_what, filter, matching) => {
    const desk = explaining(db, LETTERS)
    const total = await countDeadLetters(desk.db, filter, 10_000)
    if (total.exact) expect(total.value).toBe(matching)
    else if (matching === 'many') expect(total.value).toBeGreaterThan(1_000)
    else expect(total.value).toBeLessThanOrEqual(matching)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(MOST_READ)
  })

  it.each(FILTERS)('what a bulk verb takes by %s', async (_what, filter, matching) => {
    const desk = explaining(db, LETTERS)
    const sought = { status: 'pending', ...filter } as const
    const ids = await freeze(desk.db, sought, MANY)
    const batches = await freezeInBatches(desk.db, sought, MANY, 1_000)
    expect(batches.flatMap(batch => batch.ids.split(','))).toEqual(ids)
    expect(batches.flatMap(batch => batch.places?.split(','))).toHaveLength(ids.length)
    expect(await preview(desk.db, sought, MANY)).toBe(ids.length)
    if (matching === 'many') expect(batches.length).toBeGreaterThan(10)
    else expect(ids.length).toBeLessThanOrEqual(matching)
    expect(desk.scanned()).toEqual([])
  })

  it('following the cursor finds what is rare, however many short pages that takes', async () => {
    const filter = { text: 'order 31 was' }
    const found: string[] = []
    let pages = 0
    for (let cursor: string | undefined = ''; cursor !== undefined; pages += 1) {
      const page = await listDeadLetters(db, filter, { limit: 50, ...(cursor && { cursor }) })
      found.push(...page.items.map(({ message }) => message))
      cursor = page.nextCursor
    }
    expect(found).toEqual(['order 31 was refused'])
    expect(pages).toBe(MANY / 5_000 + 1)
  })

  it('a far page is found by its offset, and goes on by its cursor', async () => {
    const filter = { queue: 'mail', status: 'pending' } as const
    const all = await listDeadLetters(db, filter, { limit: 200 })
    const far = await listDeadLetters(db, filter, { limit: 10, offset: 100 })
    expect(far.items.map(({ id }) => id)).toEqual(all.items.slice(100, 110).map(({ id }) => id))
    const next = await listDeadLetters(db, filter, { limit: 10, cursor: far.nextCursor ?? '', offset: 5 })
    expect(next.items.map(({ id }) => id)).toEqual(all.items.slice(115, 125).map(({ id }) => id))
    expect(await listDeadLetters(db, filter, { limit: 10, offset: MANY })).toEqual({ items: [] })
  })

  it('redriving some reads only those', async () => {
    const ids = (await db.query<{ id: JobId }>(sql`SELECT id FROM redrive.dead_letter WHERE queue = 'rare'`)).map(
      row => row.id,
    )
    const seen: PlanNode[] = []
    await db
      .transaction(async tx => {
        const desk = explaining({ ...db, query: tx.query }, LETTERS)
        await redrive(desk.db, ids, null)
        seen.push(...desk.reads)
        throw new Error('taken back')
      })
      .catch(() => {})
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.filter(node => node['Actual Loops'] * node['Actual Rows'] > ids.length)).toEqual([])
    expect(seen.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
  })

  it('sending back a frozen batch touches pages of its letters, and not of the others', async () => {
    const rare = await freeze(db, { queue: 'rare', status: 'pending' }, 1_000)
    expect(rare).toHaveLength(3)
    const pages: number[] = []
    await db
      .transaction(async tx => {
        // What a function reads is in no plan: its pages are counted, the second time, when it is planned.
        const query = async <Row>(statement: Statement, params: readonly Param[] = []) => {
          const text = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement.text}`
          const [row] = await tx.query<{ 'QUERY PLAN': { Plan: Buffers }[] }>({ text }, params)
          for (const { Plan } of row?.['QUERY PLAN'] ?? []) {
            pages.push(Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'])
          }
          return [] as Row[]
        }
        for (const ids of [[newJobId()], rare]) await sentBack({ ...db, query }, ids)
        throw new Error('taken back')
      })
      .catch(error => expect(error.message).toBe('taken back'))
    expect(pages).toEqual([expect.any(Number), expect.any(Number)])
    expect(pages[1]).toBeLessThan(FEW_PAGES)
  })
})
