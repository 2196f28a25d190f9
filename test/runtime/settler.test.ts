// Group commit: ends are written together, kept while the database is away, and none stands in another's way.
import { describe, expect, it } from 'vitest'
import type { JobId, Lease } from '../../src/domain/ids.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { createSettler } from '../../src/runtime/settler.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type Gate, gate } from '../support/gate.js'
import { completed, retried } from '../support/settlements.js'

const end = (name: string): Settlement => completed({ id: name as JobId, lease: `lease of ${name}` as Lease })
const CARRIED = 'carried-1' as Lease
const names = (batch: readonly Settlement[]) => batch.map(({ id }) => String(id))

/** A settler whose flushes wait until the story lets them through: `flushes[n].gate.open(refused)`. */
function story({ inOrder = false } = {}) {
  const clock = manualClock()
  const flushes: { names: string[]; lane: number; gate: Gate<Settlement[]> }[] = []
  const errors: unknown[] = []
  const settler = createSettler({
    clock,
    random: () => 1,
    inOrder,
    settle: (batch, lane) => {
      const through = gate<Settlement[]>()
      flushes.push({ names: names(batch), lane, gate: through })
      return through.passed
    },
    instead: settlement => ({ ...settlement, decision: { type: 'bury', reason: 'could not be stored' } }),
    onError: error => errors.push(error),
  })
  const flush = (nth: number) => flushes[nth] as (typeof flushes)[number]
  return { clock, settler, flushes, flush, errors }
}

const unstorable = Object.assign(new Error('value too long'), { code: '22001' })
const away = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' })

describe('the settler', () => {
  it('writes together what ended in one turn', async () => {
    const { clock, settler, flushes, flush } = story()
    const told = [settler.settle(end('a')), settler.settle(end('b')), settler.settle(end('c'))]
    await clock.advance(0)
    expect(flushes.map(({ names }) => names)).toEqual([['a', 'b', 'c']])
    flush(0).gate.open([])
    expect(await Promise.all(told)).toEqual([true, true, true])
  })

  it('gathers what ends while a batch is being written, and writes it as soon as that is done', async () => {
    const { clock, settler, flushes, flush } = story()
    void settler.settle(end('a'))
    await clock.advance(0)
    const late = [settler.settle(end('b')), settler.settle(end('c'))]
    await clock.advance(60_000)
    void settler.settle(end('d'))
    await clock.advance(0)
    expect(flushes).toHaveLength(1)
    expect(settler.pending).toBe(4)
    flush(0).gate.open([])
    await clock.advance(0)
    expect(flush(1)).toMatchObject({ names: ['b', 'c', 'd'] })
    flush(1).gate.open([])
    expect(await Promise.all(late)).toEqual([true, true])
  })

  it('opens a second lane when many wait, and no third', async () => {
    const { clock, settler, flushes } = story()
    void settler.settle(end('a'))
    await clock.advance(0)
    for (let nth = 0; nth < 4_000; nth += 1) void settler.settle(end(`late ${nth}`))
    await clock.advance(0)
    expect(flushes.map(({ names }) => names.length)).toEqual([1, 1_000])
    expect(new Set(flushes.map(({ lane }) => lane)).size).toBe(2)
  })

  it('opens it for a quarter as many that failed: they are more work', async () => {
    const lanesAt = async (late: number, kind: (id: string) => Settlement) => {
      const { clock, settler, flushes } = story()
      void settler.settle(end('a'))
      await clock.advance(0)
      for (let nth = 0; nth < late; nth += 1) void settler.settle(kind(`late ${nth}`))
      await clock.advance(0)
      return flushes.length
    }
    const failed = (name: string) => retried({ id: name as JobId, lease: `lease of ${name}` as Lease })
    expect(await Promise.all([lanesAt(2_499, end), lanesAt(2_500, end)])).toEqual([1, 2])
    expect(await Promise.all([lanesAt(624, failed), lanesAt(625, failed)])).toEqual([1, 2])
  })

  it('sends a batch behind the one that is being written, where that keeps its order, if there is enough for it', async () => {
    const sent = async (late: number, inOrder: boolean) => {
      const { clock, settler, flushes } = story({ inOrder })
      void settler.settle(end('a'))
      await clock.advance(0)
      for (let nth = 0; nth < late; nth += 1) void settler.settle(end(`late ${nth}`))
      await clock.advance(0)
      return flushes.map(({ names, lane }) => [names.length, lane])
    }
    expect(await sent(599, true)).toEqual([[1, 0]])
    expect(await sent(600, true), 'the same lane').toEqual([
      [1, 0],
      [600, 0],
    ])
    expect(await sent(2_000, true), 'one behind, and no more').toEqual([
      [1, 0],
      [1_000, 0],
    ])
    expect(await sent(4_000, true), 'a second lane where it is far behind').toEqual([
      [1, 0],
      [1_000, 0],
      [1_000, 1],
    ])
    expect(await sent(2_000, false)).toEqual([[1, 0]])
  })

  it('writes the sorts of a batch one after the other, or sends them one behind the other', async () => {
    const sorts = async (inOrder: boolean, first = end('a')) => {
      const { clock, settler, flushes } = story({ inOrder })
      void settler.settle(first)
      void settler.settle(retried({ id: 'b' as JobId, lease: 'lease of b' as Lease }))
      void settler.settle(end('c'))
      await clock.advance(0)
      return flushes.map(({ names }) => names)
    }
    expect(await sorts(false)).toEqual([['a', 'c']])
    expect(await sorts(true)).toEqual([['a', 'c'], ['b']])
    const carried = { ...end('a'), lease: CARRIED }
    expect(await sorts(true, carried), 'what brokers carried has no order').toEqual([['a']])
  })

  it('cuts a batch short whose results are long', async () => {
    const { clock, settler, flushes, flush } = story()
    const outcome = { type: 'succeeded', result: null, size: 1_000_000 } as const
    for (let nth = 0; nth < 20; nth += 1) void settler.settle({ ...end(`long ${nth}`), outcome })
    await clock.advance(0)
    expect(flushes.map(({ names }) => names.length)).toEqual([17])
    flush(0).gate.open([])
    await clock.advance(0)
    expect(flushes.map(({ names }) => names.length)).toEqual([17, 3])
  })

  it('tells who was refused: that job belongs to someone else now', async () => {
    const { clock, settler, flush } = story()
    const lostOne = end('b')
    const told = [settler.settle(end('a')), settler.settle(lostOne)]
    await clock.advance(0)
    flush(0).gate.open([lostOne])
    expect(await Promise.all(told)).toEqual([true, false])
  })

  it('writes no more than a thousand at once', async () => {
    const { clock, settler, flushes } = story()
    for (let nth = 0; nth < 4_000; nth += 1) void settler.settle(end(`job ${nth}`))
    await clock.advance(0)
    expect(flushes.map(({ names }) => names.length)).toEqual([1_000, 1_000])
  })

  it('keeps everything while the database is away, and tries again with growing pauses', async () => {
    const { clock, settler, flushes, flush, errors } = story()
    const told = settler.settle(end('a'))
    await clock.advance(0)
    for (const [nth, pauseMs] of [50, 100, 200, 400, 800, 1_600, 2_000, 2_000].entries()) {
      flush(nth).gate.refuse(away)
      await clock.advance(pauseMs - 1)
      expect(flushes).toHaveLength(nth + 1)
      await clock.advance(1)
      expect(flush(nth + 1).names).toEqual(['a'])
    }
    expect(errors).toHaveLength(8)
    flush(8).gate.open([])
    expect(await told).toBe(true)
    await clock.advance(0)
    expect(settler.pending).toBe(0)
  })

  it('pitfall 20: writes the others when one end cannot be stored, and stores something else for that one', async () => {
    const written: Settlement[] = []
    const clock = manualClock()
    const settler = createSettler({
      clock,
      random: () => 1,
      settle: async batch => {
        if (batch.some(({ id, decision }) => id === 'bad' && decision.type !== 'bury')) throw unstorable
        written.push(...batch)
        return []
      },
      instead: settlement => ({ ...settlement, decision: { type: 'bury', reason: 'could not be stored' } }),
      onError: () => {},
    })
    const told: [boolean, Settlement][] = []
    for (const name of ['a', 'b', 'bad', 'c', 'd']) settler.write(end(name), (...what) => told.push(what))
    await clock.advance(0)
    await settler.drain(new AbortController().signal)
    const asWritten = ['a complete', 'b complete', 'bad bury', 'c complete', 'd complete']
    expect(written.map(({ id, decision }) => `${id} ${decision.type}`).sort()).toEqual(asWritten)
    expect(told.every(([settled]) => settled)).toBe(true)
    expect(told.map(([, { id, decision }]) => `${id} ${decision.type}`).sort(), 'told as written').toEqual(asWritten)
  })

  it('does not spin when not even the replacement can be stored: it is left to recovery, and the others go on', async () => {
    const clock = manualClock()
    let tries = 0
    const settler = createSettler({
      clock,
      random: () => 1,
      settle: async batch => {
        if (!batch.some(({ id }) => id === 'bad')) return []
        tries += 1
        throw unstorable
      },
      instead: settlement => settlement,
      onError: () => {},
    })
    const bad = settler.settle(end('bad'))
    await clock.advance(10_000)
    expect(await bad).toBe(false)
    expect(tries).toBeLessThanOrEqual(3)
    const good = settler.settle(end('good'))
    await clock.advance(0)
    expect(await good).toBe(true)
    expect(settler.leases(), 'what has run is not taken for a job nobody heard of').toEqual([end('bad').lease])
  })

  it('is drained when everything is written', async () => {
    const { clock, settler, flush } = story()
    void settler.settle(end('a'))
    let drained = false
    const draining = settler.drain(new AbortController().signal).then(() => {
      drained = true
    })
    await clock.advance(0)
    expect(drained).toBe(false)
    flush(0).gate.open([])
    await draining
    expect(settler.pending).toBe(0)
  })

  it('gives up draining when told so, and tries no more', async () => {
    const { clock, settler, flushes, flush } = story()
    void settler.settle(end('a'))
    await clock.advance(0)
    const limit = new AbortController()
    const draining = settler.drain(limit.signal)
    flush(0).gate.refuse(away)
    await clock.advance(10)
    limit.abort()
    await draining
    await clock.advance(60_000)
    expect(flushes).toHaveLength(1)
  })
})
