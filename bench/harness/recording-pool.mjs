// A pool that remembers the statements of a call, and what the database itself says that each of them takes.
import pg from 'pg'

/** @typedef {{ text: string, values: unknown[] }} Recorded */

export class RecordingPool extends pg.Pool {
  /** @type {Recorded[] | undefined} */
  #recorded

  /**
   * Only what one call sends is recorded: let nothing else ask meanwhile.
   * @template T
   * @param {() => Promise<T>} call
   */
  async record(call) {
    /** @type {Recorded[]} */
    const statements = []
    this.#recorded = statements
    try {
      return { answer: await call(), statements }
    } finally {
      this.#recorded = undefined
    }
  }

  /** @param {any} config @param {any[]} rest @returns {any} */
  query(config, ...rest) {
    this.#recorded?.push({ text: config.text, values: config.values ?? [] })
    // @ts-expect-error the overloads of pg do not take what they themselves declare
    return super.query(config, ...rest)
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
