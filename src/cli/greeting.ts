// The first lines of a server: where it is, what it found, and what to try.
import { inWords, isEmpty, type LedgerState, lastRecovery } from '../demo/ledger-state.js'
import { printable } from '../domain/printable.js'

export interface GreetingOptions {
  /** Which database this is, in words. */
  readonly where: string
  /** Where psql finds the views; undefined for the embedded database, which psql cannot reach. */
  readonly schema: string | undefined
  readonly url: string
  readonly found: LedgerState
  /** One that was made just now. */
  readonly token: string | undefined
  readonly jobs: readonly { readonly name: string; readonly queue: string }[]
  readonly demo: boolean
  readonly now: number
}

export function greeting({ where, schema, url, found, token, jobs, demo, now }: GreetingOptions): string[] {
  const recovery = lastRecovery(found, now)
  const own = jobs.filter(({ queue }) => !(demo && queue.startsWith('demo.')))
  const worked = own.length === 0 ? '' : `; works on ${own.map(({ name }) => printable(name)).join(', ')}`
  const call = `curl -H 'authorization: Bearer ${token ?? '<your token>'}' ${url}/api/queue-admin/statistics`
  return [
    `Redrive on ${printable(where)}`,
    isEmpty(found) ? 'found: nothing yet' : `found: ${inWords(found)}`,
    ...(recovery === undefined ? [] : [`       ${printable(recovery)}`]),
    `now:   serves ${url}${worked}`,
    ...(demo ? ['       demo jobs, about three a second; some succeed, some heal on retry, some die'] : []),
    ...(token === undefined ? [] : [`token: ${token} (may do all; it is shown this once)`]),
    `try:   ${call}`,
    `       REDRIVE_TOKEN=… npx redrive ${demo ? 'dlq ls' : 'stats'}`,
    ...(demo ? [] : ['       again with --demo, to see jobs fail and heal']),
    ...(schema === undefined
      ? []
      : [`       psql: TABLE ${schema}.queue_statistics; other views: docs/reference/sql-views.md`]),
    '',
  ]
}
