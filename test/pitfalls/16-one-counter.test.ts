// One attempt counter, in the ledger: failing across workers counts up once each, however many layers there are.
// Seen red: with `attempt = j.attempt` in TAKE (counting left to the worker), where every worker begins at 1 again.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { defineJob } from '../../src/runtime/definition.js'
import { move, openRuntime } from '../support/runtime.js'

describe('pitfall 16: attempts multiply over layers and instances', () => {
  it.each(['memory', 'server'] as const)(
    'pitfall 16: a job that fails on one worker after the other counts up once for each (%s)',
    async kind => {
      const first = await openRuntime(kind)
      const seen: string[] = []
      const retry = { attempts: 4, backoff: { type: 'immediate' } } as const
      const jobOn = (worker: string) =>
        defineJob({
          name: 'send',
          retry,
          handler: async (_, { attempt }) => {
            seen.push(`${worker}: ${attempt}`)
            throw new Error('busy')
          },
        })
      const id: JobId = await first.enqueue(jobOn('nobody'))
      for (let nth = 1; nth <= 4; nth += 1) {
        const process = move({ db: kind === 'server' ? first.another() : first.db })
        const failed = process.next('job.failed')
        const worker = process.work([jobOn(`w${nth}`)], { name: `w${nth}`, concurrency: 1 })
        process.on('job.started', () => void worker.stop())
        await failed
        await worker.stop()
      }
      expect(seen).toEqual(['w1: 1', 'w2: 2', 'w3: 3', 'w4: 4'])
      const job = await first.see(id)
      expect(job).toMatchObject({ state: 'dead', attempt: 4 })
      expect(job.attempts.map(({ number, worker }) => `${worker}: ${number}`)).toEqual(seen)
    },
  )
})
