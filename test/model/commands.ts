// Everything that can happen, as fast-check commands: each does the same to the model and to the ledger, and then
// both must agree.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Decision } from '../../src/domain/decision.js'
import { KINDS } from '../../src/domain/failure.js'
import { newJobId } from '../../src/domain/ids.js'
import type { Outcome } from '../../src/domain/outcome.js'
import { cancelAsked, cancelJob } from '../../src/ledger/cancel.js'
import { heldBy, markStarted, orphans } from '../../src/ledger/claim.js'
import { markFailed } from '../../src/ledger/dead-letter-change.js'
import { enqueueOne } from '../../src/ledger/enqueue.js'
import { handOver as give, takersOf } from '../../src/ledger/hand-over.js'
import { promote } from '../../src/ledger/promote.js'
import { pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { redrive } from '../../src/ledger/redrive.js'
import { lapseSessions, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { standBy } from '../../src/ledger/standby.js'
import { decide } from '../../src/policy/decide.js'
import { EVERY_END } from '../support/settlements.js'
import { aFailure } from '../support/story.js'
import { agree, type Seen } from './agreement.js'
import type { Model, ModelJob } from './model.js'
import { NAME, POLICY, QUEUES, type World } from './world.js'

export interface Real {
  readonly world: World
  readonly seen: Seen
}

type Command = fc.AsyncCommand<Model, Real>

const MANY = 1_000

const command = (
  label: string,
  possible: (model: Model) => boolean,
  run: (model: Model, world: World) => Promise<void>,
): Command => ({
  check: possible,
  toString: () => label,
  async run(model, { world, seen }) {
    await run(model, world)
    await agree(model, world, seen)
  },
})

const pick = <T>(from: readonly T[], index: number): T => from[index % from.length] as T
const always = () => true
/** Few at a time get far; many would all stay at the beginning. */
const roomForMore = (model: Model) => model.live().length < 5
const running = (model: Model) => model.in('active').length > 0
/** Asked to stop while they ran, and they came back into the line instead. */
const askedInVain = (model: Model) => model.live().filter(job => job.cancelAsked && job.state !== 'active')
const letters = (model: Model) => [...model.jobs.values()].filter(job => job.letter)

/** The same end for both: the model's job is what `decide` decides on. */
async function end(model: Model, world: World, job: ModelJob, outcome: Outcome, decided?: Decision): Promise<void> {
  const { claim } = job
  if (!claim) throw new Error('Only a running job can end')
  const situation = { ...job, firstClaimedAt: job.firstClaimedAt ?? model.now }
  const decision = decided ?? decide({ outcome, job: situation, policy: POLICY, now: model.now, random: world.random })
  const settlement = { id: job.id, lease: claim.lease, outcome, decision }
  expect(await world.transport.settle([settlement], { session: claim.session, lane: 0 })).toEqual([])
  model.settle(job, outcome, decision)
}

const index = fc.nat({ max: 30 })
const delay = fc.constantFrom(0, 0, 0, 1, 1_000, 5_000)
const queue = fc.constantFrom(...QUEUES)
const key = fc.option(fc.constantFrom('a', 'b'), { nil: undefined, freq: 1 })
const kind = fc.constantFrom(...KINDS, 'transient', 'transient', 'network')

const enqueue = fc.tuple(queue, fc.nat({ max: 10 }), delay, key).map(([to, priority, delayMs, uniqueKey]) =>
  command(`enqueue(${to}, ${priority}, ${delayMs} ms, ${uniqueKey})`, roomForMore, async (model, { transport }) => {
    const id = newJobId()
    const unique = uniqueKey === undefined ? {} : { uniqueKey }
    const [result] = await transport.publish([
      { id, queue: to, name: NAME, priority, payloadText: '{}', delayMs, ...unique },
    ])
    const expected = model.enqueue(id, to, priority, delayMs, uniqueKey)
    expect(result).toEqual({ id: expected.id, deduplicated: expected.id !== id })
  }),
)

const claim = fc.tuple(fc.nat({ max: 1 }), fc.integer({ min: 1, max: 5 })).map(([worker, limit]) =>
  command(
    `claim(worker ${worker}, ${limit})`,
    model => model.in('waiting').length > 0,
    async (model, { transport, workers }) => {
      const session = pick(workers, worker)
      const lanes = QUEUES.map(of => ({ queue: of, name: NAME, limit }))
      const consumer = transport.consume({ session, lanes, onWake: () => {} })
      const claimed = await consumer.fetch(lanes, limit)
      await consumer.close()
      const expected = model.next(limit)
      expect(claimed.map(job => job.id)).toEqual(expected.map(job => job.id))
      for (const [n, job] of expected.entries()) model.claim(job, session, pick(claimed, n).lease)
    },
  ),
)

/** Enqueued while a worker stands by: claimed at once if it listens, unless others wait or the queue is paused. */
const handOver = fc
  .tuple(queue, fc.nat({ max: 10 }), fc.nat({ max: 1 }), fc.boolean())
  .map(([to, priority, worker, known]) => {
    const label = `hand over(${to}, ${priority}, worker ${worker}${known ? ', who is known' : ''})`
    return command(label, roomForMore, async (model, { db, workers, channel }) => {
      const session = pick(workers, worker)
      const isThere = (job: ModelJob) => job.queue === to
      const id = newJobId()
      await standBy(db, session, channel ?? 'nobody listens', [{ queue: to, name: NAME }])
      const made = { id, queue: to, name: NAME, priority, payloadText: '{}' }
      const [taker] = known ? await takersOf(db, made) : []
      const handed = (taker && (await give(db, made, taker))) || (await enqueueOne(db, made, 'all')) === 'to a worker'
      await standBy(db, session, '', [])
      expect(handed).toBe(channel !== undefined && !model.in('waiting').some(isThere) && !model.paused.has(to))
      const job = model.enqueue(id, to, priority, 0, undefined)
      const held = (await heldBy(db, session)).find(held => held.id === id)
      expect(held !== undefined).toBe(handed)
      if (held) model.claim(job, session, held.lease)
    })
  })

const start = index.map(which =>
  command(`mark started(${which})`, running, async (model, { db }) => {
    const job = pick(model.in('active'), which)
    if (!job.claim) throw new Error('A running job has a claim')
    expect(await markStarted(db, { id: job.id, lease: job.claim.lease })).toBe(true)
    job.started = true
  }),
)

const ending = (label: string, outcome: Outcome, decided?: Decision) => (which: number) =>
  command(`${label}(${which})`, running, (model, world) =>
    end(model, world, pick(model.in('active'), which), outcome, decided),
  )

const succeed = index.map(ending('succeed', { type: 'succeeded', result: { ok: true } }))
const fail = fc
  .tuple(index, kind)
  .map(([which, of]) => ending(`fail ${of}`, { type: 'failed', failure: aFailure({ kind: of }) })(which))
const snooze = fc.tuple(index, delay).map(([which, delayMs]) => ending('snooze', { type: 'snoozed', delayMs })(which))
const bury = index.map(ending('bury', { type: 'failed', failure: aFailure(), final: true }))
const giveUp = index.map(ending('cancel by handler', { type: 'cancelled', reason: 'not needed' }))
const interrupt = fc
  .tuple(index, fc.boolean())
  .map(([which, started]) => ending(`interrupt ${started}`, { type: 'interrupted', started })(which))
const hold = fc.tuple(index, delay).map(([which, delayMs]) => {
  const outcome: Outcome = { type: 'failed', failure: aFailure() }
  return ending('hold', outcome, { type: 'hold', delayMs, reason: 'its service is down' })(which)
})

/** Someone whose lease has ended says how it went: refused, whatever it says. */
const comeLate = fc.tuple(index, fc.constantFrom(...Object.keys(EVERY_END))).map(([which, how]) =>
  command(
    `come late(${which}, ${how})`,
    model => model.stale.length > 0,
    async (model, { transport, workers }) => {
      const late = EVERY_END[how]?.(pick(model.stale, which))
      if (!late) throw new Error(`There is no ${how}`)
      expect(await transport.settle([late], { session: workers[0], lane: 1 })).toEqual([late])
    },
  ),
)

/** The worker that has this job dies with all it has; another takes its place. */
const die = index.map(which =>
  command(
    `die(${which})`,
    model => running(model) && model.orphans().length === 0,
    async (model, world) => {
      const session = pick(model.in('active'), which).claim?.session
      if (!session) throw new Error('A running job has a claim')
      await renewSession(world.db, session, -1)
      expect((await lapseSessions(world.db)).lapsed.map(({ id }) => id)).toEqual([session])
      model.gone.add(session)
      world.workers[world.workers.indexOf(session)] = await world.newSession()
    },
  ),
)

const rescue = fc.constant(
  command(
    'rescue',
    model => model.orphans().length > 0,
    async (model, world) => {
      const found = await orphans(world.db, await sessionsToSearch(world.db), MANY)
      expect(found.map(({ id }) => id).toSorted()).toEqual(
        model
          .orphans()
          .map(({ id }) => id)
          .toSorted(),
      )
      for (const orphan of found) {
        const job = model.jobs.get(orphan.id)
        if (!job) throw new Error(`The model does not know ${orphan.id}`)
        expect(orphan.mayHaveRun, 'may have run').toBe(job.started || job.lost === 0)
        const outcome: Outcome = orphan.mayHaveRun
          ? { type: 'lost', failure: aFailure({ kind: 'lost' }) }
          : { type: 'interrupted', started: false }
        await end(model, world, job, outcome)
      }
    },
  ),
)

const promoteDue = fc.constant(
  command(
    'promote',
    model => model.in('scheduled', 'retrying', 'held').length > 0,
    async (model, { db }) => {
      await promote(db, MANY, null)
      model.promote()
    },
  ),
)

const advance = fc.constantFrom(1, 499, 1_000, 10_000, 100_000).map(ms =>
  command(`advance(${ms} ms)`, always, async (model, { clock }) => {
    clock.advance(ms)
    model.now += ms
  }),
)

const pause = queue.map(of =>
  command(
    `pause(${of})`,
    model => !model.paused.has(of),
    async (model, { db }) => {
      await pauseQueue(db, of, 'a test')
      model.paused.add(of)
    },
  ),
)

const resume = queue.map(of =>
  command(
    `resume(${of})`,
    model => model.paused.has(of),
    async (model, { db }) => {
      expect(await resumeQueue(db, of, null)).toBe(true)
      model.paused.delete(of)
    },
  ),
)

const sendBack = index.map(which =>
  command(
    `redrive(${which})`,
    model => letters(model).length > 0,
    async (model, { db }) => {
      const job = pick(letters(model), which)
      const result = await redrive(db, [job.id], null)
      const dead = job.state === 'dead'
      const sent = dead && model.redrive(job)
      expect(result).toMatchObject({ redriven: sent ? [job.id] : [], conflicts: dead && !sent ? [job.id] : [] })
    },
  ),
)

const closeLetter = index.map(which =>
  command(
    `mark failed(${which})`,
    model => letters(model).length > 0,
    async (model, { db }) => {
      const { id, letter } = pick(letters(model), which)
      const was = await markFailed(db, id, 'nobody needs it')
      expect(was?.status).toBe(letter?.status === 'pending' ? 'pending' : undefined)
      if (was && letter) letter.status = 'permanently_failed'
    },
  ),
)

const cancel = index.map(which =>
  command(
    `cancel by operator(${which})`,
    model => model.jobs.size > 0,
    async (model, { db }) => {
      const live = model.live()
      const job = pick(live.length > 0 && which % 4 > 0 ? live : [...model.jobs.values()], which)
      expect(await cancelJob(db, job.id, 'a person said so')).toBe(model.cancel(job))
    },
  ),
)

const cancelLate = fc.constant(
  command(
    'cancel those asked',
    model => askedInVain(model).length > 0,
    async (model, { db }) => {
      const asked = askedInVain(model)
      expect(await cancelAsked(db)).toBe(asked.length)
      for (const job of asked) model.cancel(job)
    },
  ),
)

// What moves jobs on is named more often than the rest, so that many get far: to death, back, and to an end again.
export const COMMANDS = [
  ...[
    enqueue,
    enqueue,
    enqueue,
    handOver,
    claim,
    claim,
    claim,
    claim,
    fail,
    fail,
    fail,
    succeed,
    promoteDue,
    promoteDue,
    advance,
  ],
  ...[snooze, bury, giveUp, interrupt, hold, start, start, comeLate, die, die, rescue, rescue, rescue, rescue],
  ...[sendBack, sendBack, closeLetter, cancel, cancelLate, cancelLate, pause, resume, resume, resume],
]
