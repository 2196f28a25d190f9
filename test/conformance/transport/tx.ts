// Publishing inside a transaction of the caller's: the job is there exactly when the caller's own change is.
import { expect } from 'vitest'
import type { Tell } from '../transport.js'
import { ids } from './stage.js'

class ChangedMyMind extends Error {}

export function tx(tell: Tell): void {
  tell('a committed transaction leaves exactly one job', async ({ job, transport, transaction, worker }) => {
    const one = job()
    const published = await transaction(client => transport.publish([one], client))
    expect(published).toEqual([{ id: one.id, deduplicated: false }])
    expect(ids(await (await worker()).fetch())).toEqual([one.id])
  })

  tell('a transaction that is rolled back leaves nothing', async ({ queue, job, transport, transaction, states }) => {
    const jobs = [job(), job({ uniqueKey: 'k' }), job({ delayMs: 1_000 })]
    const attempt = transaction(async client => {
      await transport.publish(jobs, client)
      throw new ChangedMyMind()
    })
    await expect(attempt).rejects.toThrow(ChangedMyMind)
    expect(await states(...jobs)).toEqual([undefined, undefined, undefined])
    expect(await transport.depth(queue)).toBe(0)
  })

  tell('a unique key that was rolled back is free', async ({ job, publish, transport, transaction }) => {
    await transaction(async client => {
      await transport.publish([job({ uniqueKey: 'k' })], client)
      throw new ChangedMyMind()
    }).catch(() => {})
    const second = job({ uniqueKey: 'k' })
    expect(await publish(second)).toEqual([{ id: second.id, deduplicated: false }])
  })

  tell('a unique key is kept by a live job within a transaction too', async stage => {
    const { job, publish, transport, transaction } = stage
    const first = job({ uniqueKey: 'k' })
    await publish(first)
    const second = await transaction(client => transport.publish([job({ uniqueKey: 'k' })], client))
    expect(second).toEqual([{ id: first.id, deduplicated: true }])
  })

  tell(
    'a queue whose first job was rolled back works',
    async ({ queue, job, publish, transport, transaction, worker }) => {
      await transaction(async client => {
        await transport.publish([job()], client)
        throw new ChangedMyMind()
      }).catch(() => {})
      const one = job()
      await publish(one)
      expect(await transport.depth(queue)).toBe(1)
      expect(ids(await (await worker()).fetch())).toEqual([one.id])
    },
  )

  tell('before the commit nobody sees the job', async ({ queue, job, transport, transaction, worker, states }) => {
    const one = job()
    const hand = await worker()
    await transaction(async client => {
      await transport.publish([one], client)
      expect(await hand.fetch()).toEqual([])
      expect(await states(one)).toEqual([undefined])
      expect(await transport.depth(queue)).toBe(0)
    })
    expect(ids(await hand.fetch())).toEqual([one.id])
  })

  tell('a commit wakes the workers', async ({ job, another, transaction, worker }) => {
    const transport = await another()
    let listening = () => {}
    let woken = () => {}
    const up = new Promise<void>(resolve => {
      listening = resolve
    })
    let ring = () => listening()
    const hand = await worker({ transport, onWake: () => ring() })
    await up
    const rung = new Promise<void>(resolve => {
      woken = resolve
    })
    ring = () => woken()
    const one = job()
    await transaction(client => transport.publish([one], client))
    await rung
    expect(ids(await hand.fetch())).toEqual([one.id])
  })
}
