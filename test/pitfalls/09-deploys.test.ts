// A deploy burns no attempt and strands no job. Seen red: without the refund in whatFollows, without the give-back of
// the buffer in Worker.#leave, and without the abort after the grace time.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { defineJob } from '../../src/runtime/definition.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

/** Hands out five jobs whatever the room: what has no slot waits in the worker's buffer. */
const greedy = ({ transport }: Runtime): Partial<Runtime> => ({
  transport: {
    ...transport,
    consume(options) {
      const consumer = transport.consume(options)
      return {
        ...consumer,
        fetch: demand =>
          consumer.fetch(
            demand.map(lane => ({ ...lane, limit: 5 })),
            5,
          ),
      }
    },
  },
})

describe('pitfall 9: deploys burn attempts or strand jobs', () => {
  it('pitfall 9: on stop the unstarted go back at once, the running may finish, the rest is returned unspent', async () => {
    const { work, enqueue, see, db } = await openRuntime('memory', greedy)
    const finish = gate()
    const aborted = gate<unknown>()
    let inside = 0
    const job = defineJob<string>({
      name: 'send',
      handler: async (what, { signal }) => {
        inside += 1
        if (what === 'quick') return finish.passed
        signal.addEventListener('abort', () => aborted.open(signal.reason))
        return new Promise<never>(() => {})
      },
    })
    const ids: JobId[] = []
    for (const what of ['quick', 'endless', 'unstarted', 'unstarted', 'unstarted']) ids.push(await enqueue(job, what))
    const worker = work([job], { concurrency: 2 })
    const states = async () => (await Promise.all(ids.map(id => see(id)))).map(({ state }) => state)
    await until(
      'two run and three are buffered',
      async () => inside === 2 && (await states()).every(state => state === 'active'),
    )

    let stopped = false
    const stopping = worker.stop({ graceMs: 1_500 }).then(() => {
      stopped = true
    })
    await until(
      'the unstarted are back',
      async () => (await states()).filter(state => state === 'waiting').length === 3,
    )
    expect(stopped, 'while others still run').toBe(false)
    finish.open()
    await stopping
    expect(await aborted.passed).toMatchObject({ code: 'SHUTTING_DOWN' })

    const jobs = await Promise.all(ids.map(id => see(id)))
    expect(jobs.map(({ state, attempt, interruptions, lost }) => [state, attempt, interruptions, lost])).toEqual([
      ['completed', 1, 0, 0],
      ['waiting', 0, 1, 0],
      ['waiting', 0, 0, 0],
      ['waiting', 0, 0, 0],
      ['waiting', 0, 0, 0],
    ])
    expect(jobs.map(({ attempts }) => attempts.map(({ outcome, decision }) => `${outcome}: ${decision}`))).toEqual([
      [],
      ['interrupted: return'],
      [],
      [],
      [],
    ])
    const text = 'SELECT ended_by FROM redrive.session'
    expect(await db.query({ text })).toEqual([{ ended_by: 'stopped' }])
  })

  it('pitfall 9: stopping twice is stopping once, and a worker that never got its database stops too', async () => {
    const { work } = await openRuntime('memory', ({ db }) => ({
      db: { ...db, query: () => Promise.reject(new Error('away')) },
    }))
    const worker = work([defineJob({ name: 'send', handler: async () => null })])
    const stopping = worker.stop()
    expect(worker.stop()).toBe(stopping)
    await stopping
  })
})
