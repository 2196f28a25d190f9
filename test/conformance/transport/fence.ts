// Fenced (invariant 2, pitfall 1): only the claim that holds a job may say how it ended. Whoever comes too late is
// told so, and nothing changes.
import { expect } from 'vitest'
import type { Lease } from '../../../src/domain/ids.js'
import { buried, cancelled, completed, EVERY_END, retried } from '../../support/settlements.js'
import type { Tell } from '../transport.js'
import type { Seen } from './harness.js'
import { ids, type Stage, stageOn } from './stage.js'

/** A worker took the job and died; the job was rescued and another worker has it now. */
async function takenOver(stage: Stage) {
  const { job, publish, worker, crash, rescue } = stage
  const one = job()
  await publish(one)
  const [late, holder] = [await worker(), await worker()]
  const stale = await late.take()
  await crash(late.session)
  await rescue()
  const fresh = await holder.take()
  return { id: one.id, late, holder, stale, fresh }
}

/** What can be compared of two jobs. */
const whatIsLeft = (seen: Seen | undefined) => {
  if (!seen) throw new Error('The job is gone')
  const { state, attempt, snoozes, holds, interruptions, lost, runAt } = seen
  return { state, attempt, snoozes, holds, interruptions, lost, runAt }
}

export function fence(tell: Tell): void {
  tell('a job that was taken over has another lease', async stage => {
    const { stale, fresh } = await takenOver(stage)
    expect(fresh.id).toBe(stale.id)
    expect(fresh.lease).not.toBe(stale.lease)
    expect(fresh.attempt).toBe(2)
  })

  for (const [what, end] of Object.entries(EVERY_END)) {
    tell(`a late "${what}" is refused and changes nothing`, async stage => {
      const { id, late, holder, stale, fresh } = await takenOver(stage)
      const before = await stage.state(id)
      const settlement = end(stale)
      expect(await late.settle(settlement)).toEqual([settlement])
      expect(await stage.state(id)).toEqual(before)
      expect(await holder.settle(completed(fresh))).toEqual([])
      expect(await stage.states(fresh)).toEqual(['completed'])
    })

    tell(`"${what}" said twice counts once`, async stage => {
      await stage.publish(stage.job())
      const worker = await stage.worker()
      const claimed = await worker.take()
      expect(await worker.settle(end(claimed))).toEqual([])
      const before = await stage.state(claimed.id)
      const again = end(claimed)
      expect(await worker.settle(again)).toEqual([again])
      expect(await stage.state(claimed.id)).toEqual(before)
    })

    tell(`of a late and a rightful "${what}" in one batch only the rightful counts`, async stage => {
      const { id, holder, stale, fresh } = await takenOver(stage)
      const [late, rightful] = [end(stale), end(fresh)]
      expect(await holder.settle(late, rightful)).toEqual([late])
      const alone = await takenOver(stageOn(stage))
      await alone.holder.settle(end(alone.fresh))
      expect(whatIsLeft(await stage.state(id))).toEqual(whatIsLeft(await stage.state(alone.id)))
    })

    tell(`"${what}" said twice in one batch counts once`, async stage => {
      await stage.publish(stage.job())
      const worker = await stage.worker()
      const claimed = await worker.take()
      const [first, second] = [end(claimed), end(claimed)]
      const refused = await worker.settle(first, second)
      expect(refused).toHaveLength(1)
      expect(refused[0]).toBe(second)
    })
  }

  tell('a late word does not stop the others of its batch', async stage => {
    const { job, publish, worker } = stage
    const { id, holder, stale, fresh } = await takenOver(stage)
    const jobs = [job(), job(), job()]
    await publish(...jobs)
    const own = await (await worker()).fetch()
    const batch = [completed(stale), ...own.map(one => completed(one)), buried(stale), cancelled(stale), retried(stale)]
    expect(await holder.settle(...batch)).toEqual([batch[0], ...batch.slice(4)])
    expect(await stage.states(...jobs, { id })).toEqual(['completed', 'completed', 'completed', 'active'])
    expect(await holder.settle(completed(fresh))).toEqual([])
  })

  tell("one job's lease does not open another job", async stage => {
    const { job, publish, worker, states } = stage
    const jobs = [job(), job()]
    await publish(...jobs)
    const one = await worker()
    const [a, b] = await one.fetch()
    if (!a || !b) throw new Error('both were there')
    const crossed = [completed({ id: a.id, lease: b.lease })]
    expect(await one.settle(...crossed)).toEqual(crossed)
    expect(await states(...jobs)).toEqual(['active', 'active'])
  })

  tell('a job nobody knows is refused', async stage => {
    const worker = await stage.worker()
    const unknown = completed({ id: stage.job().id, lease: '1' as Lease })
    expect(await worker.settle(unknown)).toEqual([unknown])
  })

  tell('the jobs of a dead worker are rescued; those of a living one are not', async stage => {
    const { job, publish, worker, crash, rescue, states } = stage
    const jobs = [job(), job(), job(), job()]
    await publish(...jobs)
    const [dying, living] = [await worker(), await worker()]
    await dying.fetch(2)
    await living.fetch(2)
    await rescue()
    expect(await states(...jobs)).toEqual(['active', 'active', 'active', 'active'])
    await crash(dying.session)
    await rescue()
    expect(await states(...jobs)).toEqual(['waiting', 'waiting', 'active', 'active'])
    expect(ids(await living.fetch())).toEqual(ids(jobs.slice(0, 2)))
  })
}
