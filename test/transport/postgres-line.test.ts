// Where a claim begins to look: behind what was taken a moment ago, and at the start again soon after, so that whoever
// comes in before is overlooked for a moment only.
// Seen red: without the limit on `wholeAt`, the higher priority is never seen; with `after` kept on a short answer, the
// one that was given back is not.
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { settle } from '../../src/ledger/settle.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { LaneDemand } from '../../src/transport/transport.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { Line } from '../../src/transport/transports/postgres-line.js'
import { freshDatabase } from '../support/databases.js'
import { aJob, aSession, retried } from '../support/story.js'

const LANE = { queue: 'mail', name: 'send' }
const LIMIT = 2

function lineOn(clock = manualClock()) {
  const line = new Line(clock)
  const begunAfter: (string | undefined)[] = []
  let place = 0
  const look = (found: number, tookMs = 0) =>
    line.claim([{ ...LANE, limit: LIMIT }], async lanes => {
      begunAfter.push(...lanes.map(lane => lane.after))
      await clock.advance(tookMs)
      return Array.from({ length: found }, () => ({ line: String(++place) }) as ClaimedJob)
    })
  return { clock, line, look, begunAfter }
}

describe('where the next look begins', () => {
  it('after the last of a full answer, and at the start again after 50 ms', async () => {
    const { clock, look, begunAfter } = lineOn()
    await look(LIMIT)
    await look(LIMIT)
    await clock.advance(30)
    await look(LIMIT)
    await clock.advance(30)
    await look(LIMIT)
    expect(begunAfter).toEqual([undefined, '2', '4', undefined])
  })

  it('at the start after an answer that was not full', async () => {
    const { look, begunAfter } = lineOn()
    await look(LIMIT)
    await look(LIMIT - 1)
    await look(0)
    expect(begunAfter).toEqual([undefined, '2', undefined])
  })

  it('at the start less often where looking at the whole line takes long, but at least every 2 s', async () => {
    const { clock, look, begunAfter } = lineOn()
    await look(LIMIT, 30)
    await clock.advance(500)
    await look(LIMIT)
    await clock.advance(200)
    await look(LIMIT, 10_000)
    await clock.advance(1_900)
    await look(LIMIT)
    await clock.advance(200)
    await look(LIMIT)
    expect(begunAfter).toEqual([undefined, '2', undefined, '6', undefined])
  })

  it('at the start of each when there are several lanes', async () => {
    const line = new Line(manualClock())
    const seen: LaneDemand[] = []
    const lanes = ['send', 'receive'].map(name => ({ queue: 'mail', name, limit: LIMIT }))
    const found = [{ line: '1' }, { line: '2' }] as ClaimedJob[]
    for (let look = 0; look < 2; look += 1) {
      await line.claim(lanes, async asked => {
        seen.push(...asked)
        return found
      })
    }
    expect(seen.every(lane => lane.after === undefined)).toBe(true)
  })
})

describe('on a database', () => {
  it('a higher priority, and one that was given back, are overlooked for a moment only', async () => {
    const { db } = await freshDatabase('memory')
    const clock = manualClock()
    const transport = postgresTransport(db, clock)
    const session = await aSession(db)
    const consumer = transport.consume({ session, lanes: [LANE], onWake: () => {} })
    const fetch = async (limit: number) => (await consumer.fetch([{ ...LANE, limit }], limit)).map(({ id }) => id)
    const [first, second, third, fourth] = [aJob(), aJob(), aJob(), aJob()]
    await enqueue(db, [first, second, third, fourth], null)
    const [taken] = await consumer.fetch([{ ...LANE, limit: 1 }], 1)
    const urgent = aJob({ priority: 9 })
    await enqueue(db, [urgent], null)
    await settle(db, [retried(taken as ClaimedJob, 0)], '16')
    expect(await fetch(1), 'goes on behind the one it took').toEqual([second.id])
    await clock.advance(60)
    expect(await fetch(3)).toEqual([urgent.id, first.id, third.id])
    expect(await fetch(3)).toEqual([fourth.id])
    await transport.close()
  })
})
