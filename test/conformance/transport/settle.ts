// The ends of an attempt: what each one makes of the job, and what it costs.
import { expect } from 'vitest'
import {
  buried,
  cancelled,
  completed,
  givenBack,
  held,
  interrupted,
  lost,
  retried,
  snoozed,
} from '../../support/settlements.js'
import type { Tell } from '../transport.js'
import { ids, type Stage, type Worker } from './stage.js'

/** A job that a worker has just taken. */
async function running({ job, publish, worker }: Stage) {
  const one = job()
  await publish(one)
  const hand = await worker()
  return { id: one.id, hand, claimed: await hand.take() }
}

/** What the next claim of the only job tells. */
const nextClaim = async (hand: Worker) => {
  const { attempt, snoozes, holds, interruptions, lost: losses } = await hand.take()
  return { attempt, snoozes, holds, interruptions, lost: losses }
}

const SPENT_NOTHING = { attempt: 1, snoozes: 0, holds: 0, interruptions: 0, lost: 0 }

export function settle(tell: Tell): void {
  tell('a completed job is done and never comes again', async stage => {
    const { id, hand, claimed } = await running(stage)
    expect(await hand.settle(completed(claimed, { key: 'thumb.jpg' }))).toEqual([])
    expect(await stage.state(id)).toMatchObject({ state: 'completed', attempt: 1 })
    await stage.advance(3_600_000)
    await stage.promote()
    expect(await (await stage.worker()).fetch()).toEqual([])
  })

  tell('a retry with a delay comes back after it, one attempt further', async stage => {
    const { id, hand, claimed } = await running(stage)
    expect(claimed.attempt).toBe(1)
    expect(await hand.settle(retried(claimed, 2_000))).toEqual([])
    expect(await stage.state(id)).toMatchObject({ state: 'retrying', attempt: 1 })
    await stage.advance(1_999)
    await stage.promote()
    expect(await hand.fetch()).toEqual([])
    await stage.advance(1)
    await stage.promote()
    expect(await nextClaim(hand)).toEqual({ ...SPENT_NOTHING, attempt: 2 })
  })

  tell('a retry at once needs nobody to promote it', async stage => {
    const { hand, claimed } = await running(stage)
    await hand.settle(retried(claimed))
    expect(await nextClaim(hand)).toEqual({ ...SPENT_NOTHING, attempt: 2 })
  })

  tell('a snooze spends no attempt and is counted', async stage => {
    const { id, hand, claimed } = await running(stage)
    await hand.settle(snoozed(claimed, 2_000))
    expect(await stage.state(id)).toMatchObject({ state: 'scheduled', attempt: 0, snoozes: 1 })
    await stage.promote()
    expect(await hand.fetch()).toEqual([])
    await stage.advance(2_000)
    await stage.promote()
    expect(await nextClaim(hand)).toEqual({ ...SPENT_NOTHING, snoozes: 1 })
  })

  tell('an interruption spends no attempt and is counted', async stage => {
    const { hand, claimed } = await running(stage)
    await hand.settle(interrupted(claimed))
    expect(await nextClaim(hand)).toEqual({ ...SPENT_NOTHING, interruptions: 1 })
  })

  tell('a job given back before it started leaves no trace', async stage => {
    const { hand, claimed } = await running(stage)
    await hand.settle(givenBack(claimed))
    expect(await nextClaim(hand)).toEqual(SPENT_NOTHING)
  })

  tell('a held job spends no attempt, waits its time and is counted', async stage => {
    const { id, hand, claimed } = await running(stage)
    await hand.settle(held(claimed, 2_000))
    expect(await stage.state(id)).toMatchObject({ state: 'held', attempt: 0, holds: 1 })
    await stage.promote()
    expect(await hand.fetch()).toEqual([])
    await stage.advance(2_000)
    await stage.promote()
    expect(await nextClaim(hand)).toEqual({ ...SPENT_NOTHING, holds: 1 })
  })

  tell('a lost worker spends an attempt and is counted apart', async stage => {
    const { hand, claimed } = await running(stage)
    await hand.settle(lost(claimed))
    const again = await hand.take()
    expect(again).toMatchObject({ attempt: 2, lost: 1, suspect: true })
  })

  tell('counters add up over a long life', async stage => {
    const { hand, claimed } = await running(stage)
    await hand.settle(snoozed(claimed))
    for (const end of [retried, interrupted, snoozed, givenBack, lost, interrupted, retried]) {
      await hand.settle(end(await hand.take()))
    }
    expect(await nextClaim(hand)).toEqual({ attempt: 4, snoozes: 2, holds: 0, interruptions: 2, lost: 1 })
  })

  tell('a buried job is dead and never comes again', async stage => {
    const { id, hand, claimed } = await running(stage)
    expect(await hand.settle(buried(claimed))).toEqual([])
    expect(await stage.state(id)).toMatchObject({ state: 'dead', attempt: 1 })
    await stage.advance(3_600_000)
    await stage.promote()
    expect(await (await stage.worker()).fetch()).toEqual([])
  })

  tell('a cancelled job has ended', async stage => {
    const { id, hand, claimed } = await running(stage)
    expect(await hand.settle(cancelled(claimed))).toEqual([])
    expect(await stage.state(id)).toMatchObject({ state: 'cancelled', attempt: 1 })
    expect(await (await stage.worker()).fetch()).toEqual([])
  })

  tell('a batch of all sorts settles each in its own way', async stage => {
    const { job, publish, worker, states, advance, promote } = stage
    const ends = [completed, retried, snoozed, interrupted, givenBack, held, buried, cancelled, lost, completed]
    const jobs = ends.map(() => job())
    await publish(...jobs)
    const hand = await worker()
    const claimed = await hand.fetch()
    expect(await hand.settle(...ends.flatMap((end, n) => (claimed[n] ? [end(claimed[n])] : [])))).toEqual([])
    const waiting = 'waiting'
    expect(await states(...jobs)).toEqual([
      'completed',
      waiting,
      waiting,
      waiting,
      waiting,
      'held',
      'dead',
      'cancelled',
      waiting,
      'completed',
    ])
    await advance(60_000)
    await promote()
    const again = [1, 2, 3, 4, 8, 5].flatMap(index => jobs[index] ?? [])
    expect(ids(await hand.fetch())).toEqual(ids(again))
  })

  tell('many are settled in one call', async ({ queue, transport, job, publish, worker }) => {
    const jobs = Array.from({ length: 1_000 }, () => job())
    await publish(...jobs)
    const hand = await worker()
    const claimed = await hand.fetch(1_000)
    expect(await hand.settle(...claimed.map((one, n) => (n % 10 ? completed(one, n) : retried(one))))).toEqual([])
    expect(await transport.depth(queue)).toBe(100)
  })

  tell('another lane of the same worker, or another worker, may settle for it', async stage => {
    const { transport, worker } = stage
    const { id, claimed } = await running(stage)
    const other = await worker()
    expect(await transport.settle([completed(claimed)], { session: other.session, lane: 3 })).toEqual([])
    expect(await stage.state(id)).toMatchObject({ state: 'completed' })
  })
}
