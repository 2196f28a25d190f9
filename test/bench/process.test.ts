// Waiting for a contestant's workers: until they have done it, or until one of them is gone.
import { expect, it } from 'vitest'
import { type ContestantProcess, untilHandled } from '../../bench/harness/process.mjs'

function aWorker() {
  let handled = () => {}
  let ended: (error: Error) => void = () => {}
  const worker = {
    handled: 0,
    lastHandledAt: 0,
    onHandled(listener: () => void) {
      handled = listener
    },
    onEnded(listener: (error: Error) => void) {
      ended = listener
    },
  }
  const handles = (count: number, at: number) => {
    Object.assign(worker, { handled: count, lastHandledAt: at })
    handled()
  }
  return { worker: worker as unknown as ContestantProcess, handles, ends: (error: Error) => ended(error) }
}

it('ends when all together have run so many, with the time of the last', async () => {
  const [one, other] = [aWorker(), aWorker()]
  const waiting = untilHandled([one.worker, other.worker], 5, 60_000)
  one.handles(3, 10)
  other.handles(2, 30)
  expect(await waiting).toBe(30)
})

it('ends when one of them was killed, as when the bench is interrupted, and not after the limit', async () => {
  const [one, other] = [aWorker(), aWorker()]
  const waiting = untilHandled([one.worker, other.worker], 5, 60_000)
  other.ends(new Error('its process was killed'))
  await expect(waiting).rejects.toThrow('its process was killed')
})
