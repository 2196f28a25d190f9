// Whom a process hands its single jobs to: asked for on the side, known for a while, by turns.
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SessionId } from '../../src/domain/ids.js'
import { newJobId } from '../../src/domain/ids.js'
import type { NewJob } from '../../src/domain/job.js'
import { heldBy } from '../../src/ledger/claim.js'
import type { Database } from '../../src/ledger/database.js'
import type { Taker } from '../../src/ledger/hand-over.js'
import { standBy } from '../../src/ledger/standby.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { Takers } from '../../src/transport/transports/postgres-takers.js'
import { freshDatabase } from '../support/databases.js'
import { listening } from '../support/listening.js'
import { aSession, take } from '../support/story.js'

const LANE = { queue: 'mail', name: 'send' }
const OTHER = { queue: 'mail', name: 'other' }
const taker = (session: string): Taker => ({ session: session as SessionId, channel: `channel ${session}` })

describe('takers', () => {
  function known(answers: (readonly Taker[] | Error)[]) {
    const clock = manualClock()
    let asked = 0
    const takers = new Takers(clock, async () => {
      const answer = answers[asked] ?? []
      asked += 1
      if (answer instanceof Error) throw answer
      return answer
    })
    return { clock, takers, asked: () => asked }
  }

  it('are asked for when one hand-over follows another soon, and not for a single one now and then', async () => {
    const { clock, takers, asked } = known([[taker('1')]])
    for (let nth = 0; nth < 5; nth += 1) {
      takers.handed(LANE)
      await clock.advance(2_000)
    }
    expect(asked()).toBe(0)
    takers.handed(LANE)
    await clock.advance(1_999)
    takers.handed(LANE)
    await clock.advance(9)
    expect(asked(), 'not while a worker begins with the job').toBe(0)
    await clock.advance(1)
    expect(asked()).toBe(1)
    expect(takers.of(LANE)).toEqual(taker('1'))
    expect(takers.of(OTHER)).toBeUndefined()
  })

  it('take turns', async () => {
    const { clock, takers } = known([[taker('1'), taker('2'), taker('3')]])
    takers.handed(LANE)
    takers.handed(LANE)
    await clock.advance(10)
    const turns = Array.from({ length: 6 }, () => takers.of(LANE)?.session)
    expect(new Set(turns.slice(0, 3)).size).toBe(3)
    expect(turns.slice(3)).toEqual(turns.slice(0, 3))
  })

  it('are asked for again every two seconds, and known for six at most', async () => {
    const { clock, takers, asked } = known([[taker('1')], [taker('2')]])
    takers.handed(LANE)
    takers.handed(LANE)
    for (let nth = 0; nth < 19; nth += 1) {
      await clock.advance(100)
      takers.handed(LANE)
    }
    expect(asked()).toBe(1)
    await clock.advance(200)
    takers.handed(LANE)
    await clock.advance(10)
    expect(asked()).toBe(2)
    await clock.advance(6_000)
    expect(takers.of(LANE)).toEqual(taker('2'))
    await clock.advance(1)
    expect(takers.of(LANE)).toBeUndefined()
  })

  it('are not known by an answer that was asked for before they were forgotten', async () => {
    const clock = manualClock()
    let answer: (takers: readonly Taker[]) => void = () => {}
    const takers = new Takers(clock, () => new Promise(resolve => (answer = resolve)))
    takers.handed(LANE)
    takers.handed(LANE)
    await clock.advance(10)
    takers.forget(LANE)
    answer([taker('1')])
    await clock.advance(0)
    expect(takers.of(LANE)).toBeUndefined()
  })

  it('are asked for by one question at a time, and known since its answer', async () => {
    const clock = manualClock()
    const answers: ((takers: readonly Taker[]) => void)[] = []
    const takers = new Takers(clock, () => new Promise(resolve => answers.push(resolve)))
    for (let nth = 0; nth < 10; nth += 1) {
      takers.handed(LANE)
      await clock.advance(1_000)
    }
    expect(answers).toHaveLength(1)
    answers[0]?.([taker('1')])
    await clock.advance(6_000)
    expect(takers.of(LANE)).toEqual(taker('1'))
    await clock.advance(1)
    expect(takers.of(LANE)).toBeUndefined()
  })

  it('are not asked for any more when it is over', async () => {
    const { clock, takers, asked } = known([[taker('1')]])
    takers.handed(LANE)
    takers.handed(LANE)
    takers.close()
    await clock.advance(10)
    expect(asked()).toBe(0)
  })

  it('are forgotten when one of them is gone, and when they cannot be asked for', async () => {
    const { clock, takers } = known([[taker('1')], new Error('no answer')])
    takers.handed(LANE)
    takers.handed(LANE)
    await clock.advance(10)
    takers.forget(LANE)
    expect(takers.of(LANE)).toBeUndefined()
    await clock.advance(1_000)
    takers.handed(LANE)
    await clock.advance(1_000)
    takers.handed(LANE)
    await clock.advance(10)
    expect(takers.of(LANE)).toBeUndefined()
  })
})

describe('on a server', () => {
  const aJob = (): NewJob => ({ ...LANE, id: newJobId(), priority: 5, payloadText: '{"to":"ada"}' })

  it('a job is not handed past those of its process that were on their way when it asked who stands by', async () => {
    const { db, another } = await freshDatabase('server')
    const clock = manualClock()
    let arrives = () => {}
    let asked: Promise<unknown> | undefined
    const slow: Database = {
      ...db,
      query: (statement, params) => {
        const answer = db.query(statement, params)
        if (statement.text.includes('redrive.takers(')) asked = answer
        return answer as Promise<never>
      },
      // Batches: not seen in line until later.
      together: async pieces => {
        await new Promise<void>(resolve => {
          arrives = resolve
        })
        await db.together?.(pieces)
      },
    }
    const transport = postgresTransport(slow, clock)
    onTestFinished(() => transport.close())
    await listening(another(), 'mine')
    const session = await aSession(db)
    await standBy(db, session, 'mine', [LANE])
    await transport.publish([aJob()])
    const batch = transport.publish([aJob(), aJob()])
    await transport.publish([aJob()])
    await clock.advance(10)
    expect(await asked, 'nobody is in line yet').toHaveLength(1)
    arrives()
    await batch
    await transport.publish([aJob()])
    expect(await heldBy(db, session)).toHaveLength(2)
    expect(await take(db, await aSession(db), 10)).toHaveLength(3)
  })

  it('jobs go to those who are known, in turn, and in line when they are gone', async () => {
    const { db, another } = await freshDatabase('server')
    const statements: string[] = []
    let last: Promise<unknown> = Promise.resolve()
    const clock = manualClock()
    const watched = {
      ...db,
      query: ((statement, params) => {
        statements.push(/redrive\.(enqueue_one|takers)\(|INSERT INTO redrive\.job/.exec(statement.text)?.[0] ?? '')
        last = db.query(statement, params)
        return last
      }) as typeof db.query,
    }
    const transport = postgresTransport(watched, clock)
    onTestFinished(() => transport.close())
    await listening(another(), 'mine')
    const sessions = [await aSession(db), await aSession(db)]
    for (const session of sessions) await standBy(db, session, 'mine', [LANE])
    const send = async (count: number) => {
      for (let nth = 0; nth < count; nth += 1) await transport.publish([aJob()])
    }
    const ASKS = 'redrive.enqueue_one('
    const KNOWS = 'INSERT INTO redrive.job'
    await send(2)
    await clock.advance(10)
    await last // what was asked for on the side
    await send(10)
    expect(statements.filter(Boolean).filter(text => text !== 'redrive.takers(')).toEqual([
      ...[1, 2].map(() => ASKS),
      ...Array.from({ length: 10 }, () => KNOWS),
    ])
    const shares = async () => Promise.all(sessions.map(async session => (await heldBy(db, session)).length))
    const [first = 0, second = 0] = await shares()
    expect(first + second).toBe(12)
    expect(Math.abs(first - second), 'ten of them by turns').toBeLessThanOrEqual(2)

    // Not past what the same process has put in line.
    statements.length = 0
    await transport.publish([aJob(), aJob()])
    await send(1)
    expect(statements.at(-1)).toBe(ASKS)
    expect(await take(db, await aSession(db), 10)).toHaveLength(3)
    await clock.advance(2_000)
    await send(2)
    await clock.advance(10)
    await last

    for (const session of sessions) await standBy(db, session, 'mine', [])
    statements.length = 0
    await send(2)
    expect(statements, 'once in vain, and then it asks for each').toEqual([KNOWS, ASKS, ASKS])
    expect(await take(db, await aSession(db), 10)).toHaveLength(2)
    expect((await shares()).reduce((sum, share) => sum + share)).toBe(14)
  })
})
