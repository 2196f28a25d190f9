// The whole of the ledger, for tests that claim "nothing changed" or "nothing is here": every row of every table.
import { type Database, sql } from '../../src/ledger/database.js'
import { DATABASES } from './databases.js'

/** One of each sort, for rules that live in the SQL: on disk or in another schema it is the same SQL. */
export const EMBEDDED_AND_SERVER = DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server-schema')

const TABLES = [
  'job',
  'finished_job',
  'dead_letter',
  'attempt',
  'tally',
  'queue',
  'session',
  'audit',
  'failure_tally',
  'failure_group',
  'triage_rule',
  'triage_progress',
] as const

export type Table = (typeof TABLES)[number]

/** Every row of one table, oldest first where that means something. */
export async function rowsOf(db: Database, table: Table): Promise<Record<string, unknown>[]> {
  const text = `SELECT to_json(t)::text AS row FROM redrive.${table} t ORDER BY 1`
  return (await db.query<{ row: string }>({ text })).map(({ row }) => JSON.parse(row) as Record<string, unknown>)
}

/** All that the ledger remembers, to compare before with after. */
export async function everything(db: Database, except: readonly Table[] = []): Promise<Record<string, unknown>> {
  const kept = TABLES.filter(table => !except.includes(table))
  const rows: Record<string, unknown> = {}
  for (const table of kept) rows[table] = await rowsOf(db, table)
  return rows
}

const BUFFERS = /Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/

/** A database that also tells how many pages each statement touched. */
export function countingBuffers(db: Database): { db: Database; touched: () => number } {
  let touched = 0
  const counting: Database = {
    ...db,
    async query<Row>(statement: { text: string }, params: readonly (string | number | boolean | null)[] = []) {
      await db
        .transaction(async tx => {
          const text = `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ${statement.text}`
          const plan = await tx.query<{ 'QUERY PLAN': string }>({ text }, params)
          const [, hit = 0, read = 0] = BUFFERS.exec(plan.map(row => row['QUERY PLAN']).join('\n')) ?? []
          touched += Number(hit) + Number(read)
          throw new TakenBack()
        })
        .catch(error => {
          if (!(error instanceof TakenBack)) throw error
        })
      return db.query<Row>(statement, params)
    },
  }
  return { db: counting, touched: () => touched }
}

class TakenBack extends Error {}

export const vacuum = (db: Database): Promise<unknown> => db.query(sql`VACUUM redrive.job`)
