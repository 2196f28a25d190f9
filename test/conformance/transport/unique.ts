// Unique keys: one live job per queue and key; whoever comes second hears of the first.
import { expect } from 'vitest'
import { buried, cancelled, completed, held, retried } from '../../support/settlements.js'
import type { Tell } from '../transport.js'
import { ids } from './stage.js'

export function unique(tell: Tell): void {
  tell('a second job with the key of a live one is the first one', async ({ job, publish, worker }) => {
    const first = job({ uniqueKey: 'k' })
    expect(await publish(first)).toEqual([{ id: first.id, deduplicated: false }])
    expect(await publish(job({ uniqueKey: 'k' }))).toEqual([{ id: first.id, deduplicated: true }])
    expect(ids(await (await worker()).fetch())).toEqual([first.id])
  })

  tell('within one batch the first of a key is taken, and answers come in order', async stage => {
    const { job, publish, worker } = stage
    const [plain, a, again, b, third] = [
      job(),
      job({ uniqueKey: 'a' }),
      job({ uniqueKey: 'a' }),
      job({ uniqueKey: 'b' }),
      job({ uniqueKey: 'a' }),
    ]
    expect(await publish(plain, a, again, b, third)).toEqual([
      { id: plain.id, deduplicated: false },
      { id: a.id, deduplicated: false },
      { id: a.id, deduplicated: true },
      { id: b.id, deduplicated: false },
      { id: a.id, deduplicated: true },
    ])
    expect(ids(await (await worker()).fetch()).toSorted()).toEqual(ids([plain, a, b]).toSorted())
  })

  tell('of twenty who publish the same key at once, exactly one wins', async ({ job, transport, worker }) => {
    const jobs = Array.from({ length: 20 }, () => job({ uniqueKey: 'race' }))
    const results = (await Promise.all(jobs.map(one => transport.publish([one])))).flat()
    const winners = results.filter(result => !result.deduplicated)
    expect(winners).toHaveLength(1)
    expect(new Set(ids(results))).toEqual(new Set(ids(winners)))
    expect(ids(await (await worker()).fetch())).toEqual(ids(winners))
  })

  tell('a key is held while its job is delayed, runs, retries or is held', async stage => {
    const { job, publish, worker, advance, promote } = stage
    const first = job({ uniqueKey: 'k', delayMs: 1_000 })
    const again = async () => (await publish(job({ uniqueKey: 'k' })))[0]
    const taken = { id: first.id, deduplicated: true }
    await publish(first)
    expect(await again()).toEqual(taken)
    await advance(1_000)
    await promote()
    const one = await worker()
    const running = await one.take()
    expect(await again()).toEqual(taken)
    await one.settle(retried(running, 1_000))
    expect(await again()).toEqual(taken)
    await advance(1_000)
    await promote()
    await one.settle(held(await one.take(), 1_000))
    expect(await again()).toEqual(taken)
  })

  for (const [how, end] of Object.entries({ completed, buried, cancelled })) {
    tell(`a key is free again when its job was ${how}`, async ({ job, publish, worker }) => {
      await publish(job({ uniqueKey: 'k' }))
      const one = await worker()
      await one.settle(end(await one.take()))
      const second = job({ uniqueKey: 'k' })
      expect(await publish(second)).toEqual([{ id: second.id, deduplicated: false }])
      expect(ids(await one.fetch())).toEqual([second.id])
    })
  }

  tell('the same key in two queues is two keys', async ({ queue, job, publish }) => {
    const [here, there] = [job({ uniqueKey: 'k' }), job({ uniqueKey: 'k', queue: `${queue}-other` })]
    expect(await publish(here, there)).toEqual([
      { id: here.id, deduplicated: false },
      { id: there.id, deduplicated: false },
    ])
  })

  tell('a key belongs to its queue, not to a job name', async ({ job, publish }) => {
    const first = job({ uniqueKey: 'k', name: 'a' })
    await publish(first)
    expect(await publish(job({ uniqueKey: 'k', name: 'b' }))).toEqual([{ id: first.id, deduplicated: true }])
  })
}
