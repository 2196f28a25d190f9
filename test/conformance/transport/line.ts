// The line: who is next, and that nobody gets what another has.
import { expect } from 'vitest'
import { newJobId } from '../../../src/domain/ids.js'
import { completed } from '../../support/settlements.js'
import type { Tell } from '../transport.js'
import { ids, NAME } from './stage.js'

export function line(tell: Tell): void {
  tell('jobs come in the order they were published', async ({ job, publish, worker }) => {
    const first = [job(), job(), job()]
    const second = [job(), job()]
    await publish(...first)
    await publish(...second)
    expect(ids(await (await worker()).fetch())).toEqual(ids([...first, ...second]))
  })

  tell('a batch keeps its order whatever its ids are', async ({ job, publish, worker }) => {
    const jobs = Array.from({ length: 50 }, () => job({ id: newJobId() })).reverse()
    await publish(...jobs)
    expect(ids(await (await worker()).fetch())).toEqual(ids(jobs))
  })

  tell('higher priority first, then first come', async ({ job, publish, worker }) => {
    const asked = [5, 0, 10, 3, 5, 10, 0, 7]
    const jobs = asked.map(priority => job({ priority }))
    await publish(...jobs)
    const expected = [2, 5, 7, 0, 4, 3, 1, 6].map(index => jobs[index]?.id)
    expect(ids(await (await worker()).fetch())).toEqual(expected)
  })

  tell('each of the eleven priorities has its rank', async ({ job, publish, worker }) => {
    const jobs = Array.from({ length: 11 }, (_, priority) => job({ priority }))
    await publish(...jobs)
    const got = await (await worker()).fetch()
    expect(got.map(({ priority }) => priority)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
  })

  tell('several lanes are one line', async ({ queue, job, publish, worker }) => {
    const other = `${queue}-other`
    const jobs = [
      job({ name: 'a' }),
      job({ name: 'b' }),
      job({ queue: other, name: 'a', priority: 9 }),
      job({ name: 'a', priority: 9 }),
      job({ name: 'b', priority: 1 }),
      job({ queue: other, name: 'a' }),
    ]
    await publish(...jobs)
    const lanes = [
      { queue, name: 'a' },
      { queue, name: 'b' },
      { queue: other, name: 'a' },
    ]
    const all = await worker({ lanes })
    const expected = ids([2, 3, 0, 1, 5, 4].flatMap(index => jobs[index] ?? []))
    expect(ids(await all.fetch(4))).toEqual(expected.slice(0, 4))
    expect(ids(await all.fetch(4))).toEqual(expected.slice(4))
  })

  tell('a lane gives no more than its own limit, and the others fill the rest', async stage => {
    const { queue, job, publish, worker } = stage
    const urgent = Array.from({ length: 5 }, () => job({ name: 'a', priority: 9 }))
    const plain = Array.from({ length: 5 }, () => job({ name: 'b' }))
    await publish(...urgent, ...plain)
    const both = await worker({
      lanes: [
        { queue, name: 'a' },
        { queue, name: 'b' },
      ],
    })
    const got = await both.fetch(6, [
      { queue, name: 'a', limit: 2 },
      { queue, name: 'b', limit: 10 },
    ])
    expect(ids(got)).toEqual(ids([...urgent.slice(0, 2), ...plain.slice(0, 4)]))
  })

  tell('a fetch gives no more than was asked for', async ({ queue, job, publish, worker }) => {
    await publish(...Array.from({ length: 10 }, () => job()))
    const one = await worker()
    expect(await one.fetch(3)).toHaveLength(3)
    expect(await one.fetch(100, [{ queue, name: NAME, limit: 4 }])).toHaveLength(4)
    expect(await one.fetch(0)).toEqual([])
    expect(await one.fetch(100, [])).toEqual([])
    expect(await one.fetch()).toHaveLength(3)
    expect(await one.fetch()).toEqual([])
  })

  tell('no two workers get the same job, however many fetch at once', async ({ queue, job, publish, worker }) => {
    const lanes = [
      { queue, name: 'a' },
      { queue, name: 'b' },
    ]
    const jobs = Array.from({ length: 600 }, (_, n) => job({ name: n % 2 ? 'a' : 'b', priority: n % 11 }))
    await publish(...jobs)
    const workers = await Promise.all(Array.from({ length: 12 }, () => worker({ lanes })))
    const got: string[] = []
    await Promise.all(
      workers.map(async ({ fetch, settle }) => {
        for (let batch = await fetch(7); batch.length > 0; batch = await fetch(7)) {
          got.push(...ids(batch))
          expect(await settle(...batch.map(claimed => completed(claimed)))).toEqual([])
        }
      }),
    )
    expect(got.toSorted()).toEqual(ids(jobs).toSorted())
  })

  tell('a name nobody here can run is left alone and blocks nobody', async ({ job, publish, worker, states }) => {
    const unknown = job({ name: 'of another worker', priority: 10 })
    const known = job({ priority: 0 })
    await publish(unknown, known)
    expect(ids(await (await worker()).fetch())).toEqual([known.id])
    expect(await states(unknown)).toEqual(['waiting'])
  })

  tell('a job tells its worker all that was said when it was published', async ({ queue, job, publish, worker }) => {
    const said = {
      ...job({ priority: 8, payloadText: '{"key":"a.png"}', maxAttempts: 7, uniqueKey: 'one' }),
      ...{ tenant: 'acme', user: 'ann', project: 'site', service: 's3' },
    }
    await publish(said)
    const claimed = await (await worker()).take()
    expect(claimed).toMatchObject({ ...said, queue, attempt: 1, lost: 0, redrives: 0, suspect: false })
    expect(claimed.lease).toBeTruthy()
  })

  tell('a paused queue gives nothing, and its jobs keep their place', async stage => {
    const { queue, job, publish, worker, pause, resume } = stage
    const before = job()
    await publish(before)
    await pause(queue)
    const after = job()
    await publish(after)
    const one = await worker()
    expect(await one.fetch()).toEqual([])
    expect(
      await one.fetch(
        10,
        [NAME, 'x'].map(name => ({ queue, name, limit: 10 })),
      ),
    ).toEqual([])
    await resume(queue)
    expect(ids(await one.fetch())).toEqual(ids([before, after]))
  })

  tell('what runs when its queue is paused can still end', async ({ queue, job, publish, worker, pause, states }) => {
    const running = job()
    await publish(running)
    const one = await worker()
    const claimed = await one.take()
    await pause(queue)
    expect(await one.settle(completed(claimed))).toEqual([])
    expect(await states(running)).toEqual(['completed'])
  })

  tell('depth counts what waits: not what runs, is delayed or has ended', async stage => {
    const { queue, transport, job, publish, worker } = stage
    expect(await transport.depth(queue)).toBe(0)
    await publish(job(), job(), job({ name: 'other' }), job({ delayMs: 60_000 }), job({ queue: `${queue}-other` }))
    expect(await transport.depth(queue)).toBe(3)
    const one = await worker()
    const claimed = await one.take()
    expect(await transport.depth(queue)).toBe(2)
    await one.settle(completed(claimed))
    expect(await transport.depth(queue)).toBe(2)
  })

  tell('a worker that stopped fetches nothing', async ({ job, publish, worker, endSession, states }) => {
    const waiting = job()
    await publish(waiting)
    const stopped = await worker()
    await endSession(stopped.session)
    expect(await stopped.fetch()).toEqual([])
    expect(await states(waiting)).toEqual(['waiting'])
  })

  tell('a worker whose session lapsed fetches nothing', async ({ job, publish, worker, crash, states }) => {
    const waiting = job()
    await publish(waiting)
    const lapsed = await worker()
    await crash(lapsed.session)
    expect(await lapsed.fetch()).toEqual([])
    expect(await states(waiting)).toEqual(['waiting'])
  })

  tell('publishing nothing, and settling nothing, is nothing', async ({ publish, worker }) => {
    expect(await publish()).toEqual([])
    expect(await (await worker()).settle()).toEqual([])
  })
}
