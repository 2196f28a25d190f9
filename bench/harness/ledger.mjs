// What work costs Redrive's database, told by Postgres itself.
import { readFile } from 'node:fs/promises'

// The kinds of WAL records that count as one row or one index entry each. Each ends with what else it may say (+INIT).
const COUNTED = {
  inserts: ['Heap/INSERT', 'Heap2/MULTI_INSERT'],
  updates: ['Heap/UPDATE', 'Heap/HOT_UPDATE'],
  deletes: ['Heap/DELETE'],
  locks: ['Heap/LOCK', 'Heap2/LOCK_UPDATED'],
  indexEntries: ['Btree/INSERT_LEAF', 'Btree/INSERT_POST', 'Btree/SPLIT_L', 'Btree/SPLIT_R'],
}

export class Ledger {
  /** @param {import('pg').Client} client @param {boolean} readsWal */
  constructor(client, readsWal) {
    this.client = client
    this.readsWal = readsWal
  }

  /** @param {import('./arena.mjs').Arena} arena */
  static async open({ meter }) {
    if (!meter) throw new Error('there is a meter only on Postgres')
    const readsWal = await meter.client.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect').then(
      () => true,
      () => false,
    )
    return new Ledger(meter.client, readsWal)
  }

  /**
   * @param {readonly import('./process.mjs').ContestantProcess[]} processes
   * @param {number} jobs
   * @param {() => Promise<unknown>} act
   */
  async cost(processes, jobs, act) {
    const before = await this.#state(processes)
    await act()
    const after = await this.#state(processes)
    /** @type {import('./entrants.mjs').Figures} */
    const figures = {}
    for (const key of Object.keys(before.numbers)) figures[key] = (after.numbers[key] - before.numbers[key]) / jobs
    if (this.readsWal) {
      const records = await this.#records(before.lsn, after.lsn)
      for (const [key, types] of Object.entries(COUNTED)) figures[key] = countOf(records, types) / jobs
    }
    return figures
  }

  /** @param {readonly import('./process.mjs').ContestantProcess[]} processes */
  async #state(processes) {
    const usages = await Promise.all(processes.map(one => one.ask('usage')))
    // Statistics of other backends arrive late; these two do not.
    const { rows } = await this.client.query(
      `SELECT pg_current_wal_flush_lsn() AS lsn, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::float8 AS wal,
              txid_snapshot_xmax(txid_current_snapshot())::text::float8 AS transactions`,
    )
    const [{ lsn, wal, transactions }] = rows
    const postgresUs = await this.#postgresUs()
    return {
      lsn,
      numbers: {
        commits: transactions,
        wal,
        nodeUs: usages.reduce((sum, { cpu }) => sum + cpu.user + cpu.system, 0),
        ...(postgresUs !== undefined && { postgresUs }),
      },
    }
  }

  /** CPU time of the backends of this database; undefined where the server is not on this machine. */
  async #postgresUs() {
    const { rows } = await this.client.query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
    const times = await Promise.all(rows.map(({ pid }) => readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => '')))
    const known = times.filter(text => text !== '')
    return known.length === 0 ? undefined : known.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1000, 0)
  }

  /** @param {string} from @param {string} to @returns {Promise<{ type: string, count: number }[]>} */
  async #records(from, to) {
    const { rows } = await this.client.query(
      `SELECT "resource_manager/record_type" AS type, count::float8 AS count FROM pg_get_wal_stats($1, $2, true)`,
      [from, to],
    )
    return rows
  }

  async active() {
    const { rows } = await this.client.query(`SELECT count(*)::int AS count FROM redrive.job WHERE in_line`)
    return rows[0].count
  }

  async forgetLive() {
    await this.client.query('TRUNCATE redrive.job')
  }
}

/** @param {readonly { type: string, count: number }[]} records @param {readonly string[]} types */
const countOf = (records, types) =>
  records
    .filter(({ type }) => types.some(name => type === name || type.startsWith(`${name}+`)))
    .reduce((sum, { count }) => sum + count, 0)
