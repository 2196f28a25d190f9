// The places of a worker, while jobs end in any order.
import { expect, it } from 'vitest'
import type { JobId, Lease } from '../../src/domain/ids.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import { DEFAULT_POLICY } from '../../src/domain/policy.js'
import { defineJob } from '../../src/index.js'
import type { Held, Running } from '../../src/runtime/slots.js'
import { Slots } from '../../src/runtime/slots.js'

const send = defineJob({ name: 'send', queue: 'mail' })
const resize = defineJob({ name: 'resize', queue: 'images' })
const jobOf = ({ queue, name }: { queue: string; name: string }, nth: number) =>
  ({ queue, name, id: `${nth}` as JobId, lease: `${nth}` as Lease }) as ClaimedJob

function running(slots: Slots, jobs: readonly ClaimedJob[]): Running[] {
  for (const job of jobs) slots.hold(job, 0)
  return jobs.map(() => slots.start(slots.next() as Held, DEFAULT_POLICY))
}

it('whoever ends leaves the others where they are, and leaves once', () => {
  const slots = new Slots([send, resize], 4, () => undefined)
  const jobs = [jobOf(send, 1), jobOf(resize, 2), jobOf(send, 3), jobOf(resize, 4)]
  const [first, second, third, fourth] = running(slots, jobs) as [Running, Running, Running, Running]
  expect(slots.freeCount).toBe(0)
  slots.finish(second)
  slots.finish(second)
  expect(slots.running().map(({ job }) => job.id)).toEqual(['1', '4', '3'])
  expect(slots.leases()).toEqual(['1', '4', '3'])
  expect(slots.freeCount).toBe(1)
  for (const one of [fourth, first, third]) slots.finish(one)
  expect(slots.runningCount).toBe(0)
  expect(slots.lanes.map(({ load }) => load)).toEqual([0, 0])
})

it('jobs of several lanes are counted where they belong', () => {
  const slots = new Slots([send, resize], 4, () => undefined)
  for (const nth of [1, 2, 3]) slots.hold(jobOf(nth === 2 ? resize : send, nth), 0)
  expect(slots.lanes.map(({ definition, load }) => [definition.name, load])).toEqual([
    ['send', 2],
    ['resize', 1],
  ])
})

it('the line stops at a job whose payload is not there; only what a broker carries goes past it', () => {
  const slots = new Slots([send, resize], 4, () => undefined)
  const unread = { ...jobOf(send, 1), apart: true }
  const [ledgers, brokers] = [jobOf(send, 2), { ...jobOf(resize, 3), carried: true } as const]
  for (const job of [unread, ledgers, brokers]) slots.hold(job, 0)
  expect(slots.next()).toBeUndefined()
  expect(slots.nextCarried()?.job).toBe(brokers)
  expect(slots.nextCarried()).toBeUndefined()
  expect(slots.waitingCount).toBe(2)
  unread.apart = false
  expect(slots.nextCarried(), 'the line goes on').toBeUndefined()
  expect(slots.next()?.job).toBe(unread)
  expect(slots.next()?.job).toBe(ledgers)
  expect(slots.next()).toBeUndefined()
})
