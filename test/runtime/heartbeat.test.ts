// A worker's lease: renewed three times over its length, given up in our own mind at four fifths of it, revived by a
// late renewal, replaced when somebody else has ended it.
import { describe, expect, it } from 'vitest'
import type { Database, Param, Statement } from '../../src/ledger/database.js'
import { Heartbeat } from '../../src/runtime/heartbeat.js'
import { manualClock } from '../../src/testing/manual-clock.js'

const LEASE_MS = 15_000

/** A ledger that knows sessions only. `answer` says what becomes of each renewal: rows, an error, or silence. */
function story(leaseMs = LEASE_MS) {
  const clock = manualClock()
  const told: string[] = []
  const calls: string[] = []
  let sessions = 0
  const ledger = { renew: async (): Promise<unknown[]> => [{ cancelled: null }], open: async () => {} }
  const db = {
    now: () => null,
    async query(statement: Statement, _params: readonly Param[] = []) {
      if (statement.text.includes('INSERT INTO redrive.session')) {
        calls.push('open')
        await ledger.open()
        sessions += 1
        return [{ id: sessions }]
      }
      if (statement.text.includes("ended_by = 'stopped'")) {
        calls.push('end')
        return []
      }
      calls.push('renew')
      return ledger.renew()
    },
  } as unknown as Database
  const at = () => `${clock.monotonic() / 1_000} s`
  const heartbeat = new Heartbeat({
    db,
    clock,
    random: () => 1,
    session: { worker: 'w', host: 'h', pid: 1, version: null, queues: ['mail'], concurrency: 1, leaseMs },
    onLapse: reason => told.push(`${at()}: lapsed: ${reason}`),
    onOpen: session => told.push(`${at()}: session ${session}`),
    onCancel: jobs => told.push(`${at()}: cancel ${jobs.map(job => `${job.id} (${job.reason})`)}`),
    onError: error => told.push(`${at()}: ${(error as Error).message}`),
  })
  return { clock, told, calls, heartbeat, ledger }
}

const away = async () => {
  throw new Error('away')
}
const silence = () => new Promise<never>(() => {})
const TOO_LATE = 'lapsed: the lease could not be renewed in time'

describe('the heartbeat', () => {
  it('opens one session and renews it three times over the length of the lease', async () => {
    const { clock, told, calls, heartbeat } = story()
    await heartbeat.start()
    await clock.advance(60_000)
    expect(told).toEqual(['0 s: session 1'])
    expect(calls).toEqual(['open', ...Array(12).fill('renew')])
    expect(heartbeat.safe).toBe(true)
  })

  it('lapses at four fifths of the lease when every renewal fails, and not before', async () => {
    const { clock, told, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = away
    await clock.advance(LEASE_MS * 0.8 - 1)
    expect(heartbeat.safe).toBe(true)
    expect(told.filter(line => line.includes('lapsed'))).toEqual([])
    await clock.advance(500)
    expect(heartbeat.safe).toBe(false)
    expect(told.filter(line => line.includes('lapsed'))).toEqual([`12 s: ${TOO_LATE}`])
  })

  it('lapses in time also when a renewal gets no answer at all', async () => {
    const { clock, told, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = silence
    await clock.advance(LEASE_MS)
    expect(told).toEqual(['0 s: session 1', `12 s: ${TOO_LATE}`])
  })

  it('lapses before the end of a lease that is shorter than the pauses between its tries', async () => {
    const { clock, told, heartbeat, ledger } = story(600)
    await heartbeat.start()
    ledger.renew = away
    await clock.advance(600)
    expect(told.filter(line => line.includes('lapsed'))).toEqual([`0.48 s: ${TOO_LATE}`])
  })

  it('counts the lease from before the question, since the answer may have been long on its way', async () => {
    const { clock, heartbeat, ledger } = story()
    await heartbeat.start()
    let answer: (rows: unknown[]) => void = () => {}
    ledger.renew = () =>
      new Promise(resolve => {
        answer = resolve
      })
    await clock.advance(11_000)
    ledger.renew = silence
    answer([{ cancelled: null }])
    await clock.advance(5_000 + LEASE_MS * 0.8 - 11_000 - 1)
    expect(heartbeat.safe).toBe(true)
    await clock.advance(1)
    expect(heartbeat.safe).toBe(false)
  })

  it('revives the same session when a renewal comes through after all', async () => {
    const { clock, told, calls, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = away
    await clock.advance(13_000)
    ledger.renew = async () => [{ cancelled: null }]
    await clock.advance(1_000)
    expect(heartbeat.safe).toBe(true)
    expect(told.filter(line => !line.includes('away'))).toEqual([
      '0 s: session 1',
      `12 s: ${TOO_LATE}`,
      '13.5 s: session 1',
    ])
    expect(calls.filter(call => call === 'open')).toHaveLength(1)
  })

  it('opens a new session when another process has ended the old one', async () => {
    const { clock, told, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = async () => []
    await clock.advance(5_000)
    ledger.renew = async () => [{ cancelled: null }]
    await clock.advance(20_000)
    expect(told).toEqual(['0 s: session 1', '5 s: lapsed: the session was ended by another process', '5 s: session 2'])
    expect(heartbeat.session).toBe('2')
  })

  it('keeps asking for a new session while the database is away, and is not safe without one', async () => {
    const { clock, told, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = async () => []
    ledger.open = away
    await clock.advance(7_000)
    expect(heartbeat.safe).toBe(false)
    ledger.open = async () => {}
    ledger.renew = async () => [{ cancelled: null }]
    await clock.advance(500)
    expect(heartbeat.safe).toBe(true)
    expect(told.at(-1)).toBe('7.5 s: session 2')
  })

  it('hears with a renewal which of its jobs a person wants cancelled', async () => {
    const { clock, told, heartbeat, ledger } = story()
    await heartbeat.start()
    ledger.renew = async () => [{ cancelled: 'a', reason: 'too late' }, { cancelled: 'b' }]
    await clock.advance(5_000)
    expect(told.at(-1)).toBe('5 s: cancel a (too late),b (cancelled by an operator)')
  })

  it('ends its session when it stops, and renews no more', async () => {
    const { clock, calls, heartbeat } = story()
    await heartbeat.start()
    await heartbeat.stop()
    await clock.advance(60_000)
    expect(calls).toEqual(['open', 'end'])
  })
})
