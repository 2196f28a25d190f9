// Wake: a consumer hears that there may be work. Never the only way to learn of it: fetching finds work in any case.
import { expect } from 'vitest'
import type { Tell } from '../transport.js'
import { ids } from './stage.js'

/** A bell whose next ring can be awaited. */
function bell() {
  let rings = 0
  let answer = () => {}
  return {
    ring: () => {
      rings += 1
      answer()
    },
    rings: () => rings,
    next: () =>
      new Promise<void>(resolve => {
        answer = resolve
      }),
  }
}

export function wake(tell: Tell): void {
  tell('a job published to an empty lane wakes the workers of the process', async stage => {
    const { job, worker, another } = stage
    const transport = await another({ deaf: true })
    const { ring, next } = bell()
    const one = await worker({ transport, onWake: ring })
    const woken = next()
    const first = job()
    await transport.publish([first])
    await woken
    expect(ids(await one.fetch())).toEqual([first.id])
  })

  tell('a job for other lanes wakes nobody here', async stage => {
    const { queue, job, worker, another } = stage
    const transport = await another({ deaf: true })
    const [here, there] = [bell(), bell()]
    await worker({ transport, onWake: here.ring })
    await worker({ transport, onWake: there.ring, lanes: [{ queue: `${queue}-other`, name: 'x' }] })
    const woken = there.next()
    await transport.publish([job({ queue: `${queue}-other`, name: 'x' })])
    await woken
    expect(here.rings()).toBe(0)
  })

  tell('a job published by another process wakes the workers of this one', async stage => {
    const { job, worker, another } = stage
    const [here, there] = [await another(), await another({ deaf: true })]
    const { ring, next } = bell()
    const listening = next()
    const one = await worker({ transport: here, onWake: ring })
    await listening
    const woken = next()
    const first = job()
    await there.publish([first])
    await woken
    expect(ids(await one.fetch())).toEqual([first.id])
  })

  tell('a job that becomes due wakes', async ({ job, worker, another, advance, promote }) => {
    const transport = await another()
    const { ring, next } = bell()
    const listening = next()
    const one = await worker({ transport, onWake: ring })
    await listening
    const later = job({ delayMs: 1_000 })
    await transport.publish([later])
    const woken = next()
    await advance(1_000)
    await promote()
    await woken
    expect(ids(await one.fetch())).toEqual([later.id])
  })

  tell('a queue that is resumed wakes', async ({ queue, job, publish, worker, pause, resume }) => {
    await pause(queue)
    const { ring, next } = bell()
    const one = await worker({ onWake: ring })
    const waiting = job()
    await publish(waiting)
    expect(await one.fetch()).toEqual([])
    const woken = next()
    await resume(queue)
    await woken
    expect(ids(await one.fetch())).toEqual([waiting.id])
  })

  tell('who cannot hear finds the work all the same', async ({ job, publish, worker, another }) => {
    const deaf = await worker({ transport: await another({ deaf: true }) })
    const first = job()
    await publish(first)
    expect(ids(await deaf.fetch())).toEqual([first.id])
  })

  tell('a consumer that was closed is woken no more', async ({ queue, job, another, openSession }) => {
    const transport = await another({ deaf: true })
    const [closed, open] = [bell(), bell()]
    const lanes = [{ queue, name: 'task' }]
    const consumer = transport.consume({ session: await openSession(), lanes, onWake: closed.ring })
    transport.consume({ session: await openSession(), lanes, onWake: open.ring })
    await consumer.close()
    const woken = open.next()
    await transport.publish([job()])
    await woken
    expect(closed.rings()).toBe(0)
  })
}
