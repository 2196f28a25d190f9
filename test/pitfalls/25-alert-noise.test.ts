// Whoever is on call hears of causes, not of attempts: once when one is new, once when a resolved one is back, and of a
// muted one not at all.
// Seen red: with every group that NOTICE touches taken for a new one.
import { describe, expect, it } from 'vitest'
import { defineJob, PermanentError } from '../../src/index.js'
import { openLibrary } from '../support/library.js'

describe('pitfall 25: alert noise from expected failures', () => {
  it('pitfall 25: a hundred failures of one cause are one message, and none when it is muted', async () => {
    const { redrive, next } = await openLibrary('memory')
    const told: string[] = []
    redrive.on('group.new', ({ title }) => told.push(`new: ${title}`))
    redrive.on('group.regressed', ({ title }) => told.push(`back: ${title}`))
    const job = defineJob<number>({
      name: 'noisy',
      handler: async nth => {
        throw new PermanentError(`customer ${nth} has no address`)
      },
    })
    const worker = redrive.work([job], { concurrency: 5 })
    const fail = async (from: number, count: number) => {
      let left = count
      const all = next('job.dead', () => --left === 0)
      await redrive.enqueueMany(
        job,
        Array.from({ length: count }, (_, nth) => ({ payload: from + nth })),
      )
      await all
    }
    const heard = next('group.new')
    await fail(0, 100)
    const { id } = await heard
    await fail(100, 100)
    const back = next('group.regressed')
    await redrive.operator.groups.update(id, { status: 'resolved' })
    await fail(200, 100)
    await back
    await redrive.operator.groups.update(id, { status: 'muted' })
    await fail(300, 100)
    expect((await redrive.operator.groups.get(id)).dead).toEqual({ value: 400, exact: true })
    await worker.stop()
    // Closing says what is left to say.
    await redrive.close()
    expect(told.map(title => title.replace(/\d+/, 'N'))).toEqual([
      'new: PermanentError: customer N has no address',
      'back: PermanentError: customer N has no address',
    ])
  })
})
