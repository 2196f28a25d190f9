// A pool that remembers the statements of a call, and what the database itself says that each of them takes.
import pg from 'pg'

/** @typedef {{ text: string, values: unknown[] }} Recorded */

export class RecordingPool extends pg.Pool {
  /** @type {Recorded[] | undefined} */
  #recorded

  /** @param {pg.PoolConfig} config */
  constructor(config) {
    super(config)
    // Of each connection, however it is asked.
    this.on('connect', client => {
      const query = client.query.bind(client)
      client.query = (/** @type {any} */ config, /** @type {any[]} */ ...rest) => {
        this.#recorded?.push({ text: config.text ?? config, values: config.values ?? [] })
        // @ts-expect-error the overloads of pg do not take what they themselves declare
        return query(config, ...rest)
      }
    })
  }

  /**
   * Only what one call sends is recorded: let nothing else ask meanwhile.
   * @template T
   * @param {() => Promise<T>} call
   * @param {{ mayAskNothing?: boolean }} [options] what was found out before may be told again
   */
  async record(call, { mayAskNothing = false } = {}) {
    /** @type {Recorded[]} */
    const statements = []
    this.#recorded = statements
    try {
      const answer = await call()
      if (statements.length === 0 && !mayAskNothing)
        throw new Error('A call that was to be measured asked the database nothing')
      return { answer, statements }
    } finally {
      this.#recorded = undefined
    }
  }

  /** Planning included; one after the other, even if the call sent them side by side. @param {readonly Recorded[]} statements */
  async databaseMs(statements) {
    let total = 0
    for (const { text, values } of statements) {
      const { rows } = await this.query({ text: `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`, values })
      const [plan] = rows[0]['QUERY PLAN']
      total += plan['Planning Time'] + plan['Execution Time']
    }
    return total
  }
}
