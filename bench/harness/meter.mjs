// What a load costs the database: WAL bytes (of the whole server: nothing else should run) and dead tuples made.
import pg from 'pg'
import { sleep } from './clock.mjs'

const LOOK_MS = 20
const LIMIT_MS = 10_000

export class Meter {
  /** @param {pg.Client} client */
  constructor(client) {
    this.client = client
  }

  /** @param {string} address */
  static async open(address) {
    const client = new pg.Client({ connectionString: address })
    client.on('error', () => {}) // the database is dropped under it when a round fails
    await client.connect()
    return new Meter(client)
  }

  async wal() {
    const { rows } = await this.client.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes`)
    return Number(rows[0].bytes)
  }

  /**
   * Every update and delete leaves a dead tuple behind, whether or not a vacuum has been there since. A backend tells its
   * counters at the latest when it ends, so this waits until the contestant's have all ended: close it first.
   */
  async deadTuples() {
    await this.client.query('COMMIT') // a transaction held open for the question would see no backend end
    for (let waitedMs = 0; (await this.#othersConnected()) > 0; waitedMs += LOOK_MS) {
      if (waitedMs > LIMIT_MS) throw new Error('its connections did not end, so its dead tuples are not known')
      await sleep(LOOK_MS)
    }
    const { rows } = await this.client.query(
      'SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::float8 AS tuples FROM pg_stat_user_tables',
    )
    return Number(rows[0].tuples)
  }

  async #othersConnected() {
    const { rows } = await this.client.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
    )
    return rows[0].count
  }

  /** Transactions so far in this database, its own included. */
  async transactions() {
    const { rows } = await this.client.query(
      'SELECT (xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database WHERE datname = current_database()',
    )
    return Number(rows[0].count)
  }

  async close() {
    await this.client.end().catch(() => {})
  }
}
