// A database that notes how each statement reads: which tables, by what, how many rows. For tests of pitfalls 19 and 24,
// which count rows and not time.
import type { Database, Param, Statement } from '../../src/ledger/database.js'

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Loops': number
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

const flat = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flat)]

/** Rows that it looked at, kept or not. */
const rowsOf = (node: PlanNode): number =>
  node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0))

/** Statements are carried out twice, once explained. `tables`: those whose reading is noted; partitions by what they begin with. */
export function explaining(db: Database, tables: readonly string[]) {
  const reads: PlanNode[] = []
  const isNoted = (table = '') => tables.some(noted => table === noted || table.startsWith(`${noted}_`))
  const query = async <Row>(statement: Statement, params: readonly Param[] = []) => {
    const text = `EXPLAIN (ANALYZE, FORMAT JSON) ${statement.text}`
    const [row] = await db.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>({ text }, params)
    for (const { Plan } of row?.['QUERY PLAN'] ?? []) {
      reads.push(...flat(Plan).filter(node => isNoted(node['Relation Name']) && node['Actual Loops'] > 0))
    }
    return db.query<Row>(statement, params)
  }
  return {
    db: { ...db, query } satisfies Database,
    reads,
    /** Of these tables, in all. */
    rows: () => reads.reduce((sum, node) => sum + rowsOf(node), 0),
    /** Tables that were read from end to end, and had rows. */
    scanned: () =>
      reads.filter(node => node['Node Type'] === 'Seq Scan' && rowsOf(node) > 0).map(node => node['Relation Name']),
  }
}
