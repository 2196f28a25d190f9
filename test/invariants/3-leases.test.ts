// Leases, not guesses: one row for all of a worker's jobs, and no work without the right to it.
// Seen red: with one more statement in a renewal, with SAFE_SHARE = 1, and with a worker that keeps its consumer after a lapse
// and does not ask `heartbeat.safe` before it fetches (either one alone covers for the other).
import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../../src/domain/errors.js'
import type { Database, Statement } from '../../src/ledger/database.js'
import { defineJob } from '../../src/runtime/definition.js'
import { newJob } from '../../src/runtime/producer.js'
import { claimed, pretendWorker } from '../support/fake-worker.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

/** The statements of a worker that holds so many running jobs, over three renewals. */
async function statementsOfRenewing(jobs: number): Promise<string[]> {
  const statements: string[] = []
  let counting = false
  const counted = (db: Database): Database => ({
    ...db,
    query: (statement: Statement, params) => {
      if (counting && /redrive\.(session|job)\b/.test(statement.text)) statements.push(statement.text)
      return db.query(statement, params)
    },
  })
  const { runtime, work, next } = await openRuntime('memory', ({ db }) => ({ db: counted(db) }))
  let running = 0
  const job = defineJob({
    name: 'long',
    handler: () => {
      running += 1
      return new Promise<never>(() => {})
    },
  })
  const made = await Promise.all(Array.from({ length: jobs }, () => newJob(runtime.clock, job, {}, {})))
  await runtime.transport.publish(made)
  const lapsed = next('worker.lapsed').then(() => {
    throw new Error('the lease was lost')
  })
  work([job], { concurrency: jobs, leaseMs: 1_500, pollMs: 60_000 })
  await until('all run', () => running === jobs)
  counting = true
  const renewals = () => statements.filter(text => text.includes('UPDATE redrive.session')).length
  await Promise.race([until('three renewals', () => renewals() === 3), lapsed])
  return statements.filter(text => !/WHERE NOT in_line/.test(text))
}

describe('invariant 3: leases, not guesses', () => {
  it('invariant 3: renewing costs the same for one job as for five hundred: one statement on one row', async () => {
    const one = await statementsOfRenewing(1)
    const many = await statementsOfRenewing(500)
    expect(many).toEqual(one)
    expect(new Set(many).size, 'nothing but the renewal').toBe(1)
  })

  it('invariant 3: a worker that cannot renew starts nothing new and aborts before its lease is over', async () => {
    let aborted: { atMs: number; reason: unknown } | undefined
    let given = false
    const { clock, ledger, worker } = pretendWorker((_, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = { atMs: clock.monotonic(), reason: signal.reason }
      })
      return new Promise<never>(() => {})
    })
    ledger.fetch = async () => {
      if (given) return []
      given = true
      return [claimed()]
    }
    await clock.advance(100)
    expect(worker.active).toBe(1)
    ledger.renew = () => Promise.reject(new Error('away'))
    await clock.advance(11_900)
    expect(aborted?.atMs, 'at four fifths of fifteen seconds').toBe(12_000)
    expect(isRedriveError(aborted?.reason, 'LEASE_LOST')).toBe(true)
    const { fetches } = ledger
    await clock.advance(60_000)
    expect(ledger.fetches, 'without a lease nothing is fetched').toBe(fetches)
    ledger.renew = async () => [{ cancelled: null }]
    await clock.advance(2_000)
    expect(ledger.fetches, 'with one it goes on').toBeGreaterThan(fetches)
    const stopping = worker.stop({ graceMs: 0 })
    await clock.advance(1_000)
    await stopping
  })
})
