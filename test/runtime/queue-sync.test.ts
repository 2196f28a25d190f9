// A running worker follows what a person sets at run time: policies of its queues and of its job names, within seconds.
import { describe, expect, it, onTestFinished } from 'vitest'
import { newJobId } from '../../src/domain/ids.js'
import { type PolicyTarget, setPolicy } from '../../src/ledger/policy.js'
import { pauseQueue } from '../../src/ledger/queue.js'
import { defineJob } from '../../src/runtime/definition.js'
import { followPolicies, queueSync } from '../../src/runtime/queue-sync.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

const EVERY_MS = 2_000
const SEND: PolicyTarget = { scope: 'job', target: 'send' }
const MAIL: PolicyTarget = { scope: 'queue', target: 'mail' }

const send = defineJob({ name: 'send', queue: 'mail', retry: { attempts: 5 }, handler: async () => null })
const job = { id: newJobId(), queue: 'mail', name: 'send' }

describe.each(EMBEDDED_AND_SERVER)('on $name', ({ kind }) => {
  it('a running worker follows the policy of a job name at its next look, and its end', async () => {
    const clock = manualClock()
    const { runtime, db } = await openRuntime(kind, () => ({ clock }))
    const errors: unknown[] = []
    const paused: string[] = []
    const sync = queueSync(runtime, {
      lanes: [send],
      onPaused: queue => paused.push(queue),
      onError: error => errors.push(error),
    })
    onTestFinished(() => sync.stop())
    const attempts = () => runtime.policies.for(send.policy, job).attempts
    const lookAgain = async (what: string, seen: () => boolean) => {
      await clock.advance(EVERY_MS)
      await until(what, () => seen() || undefined)
    }
    await sync.start()
    expect(attempts()).toBe(5)
    await setPolicy(db, MAIL, { policy: { attempts: 7 }, setBy: 'ada' })
    await setPolicy(db, SEND, { policy: { attempts: 2 }, setBy: 'ada' })
    await until('a timer for the next look is set', () => clock.pending > 0 || undefined)
    await lookAgain("the job's policy is followed", () => attempts() === 2)
    await until('a timer for the next look is set', () => clock.pending > 0 || undefined)
    await setPolicy(db, SEND, { policy: null, setBy: 'ada' })
    await pauseQueue(db, 'mail', 'ada')
    await lookAgain("the queue's holds again", () => attempts() === 7)
    await until('it is told of the pause', () => paused.includes('mail') || undefined)
    expect(errors).toEqual([])
  })

  it('a running worker ends jobs by what was set a look ago, without being started again', async () => {
    const clock = manualClock()
    const moving = await openRuntime(kind, () => ({ clock }))
    const busy = defineJob({
      name: 'send',
      queue: 'mail',
      retry: { attempts: 2, backoff: { type: 'immediate' } },
      handler: async () => {
        throw new Error('busy')
      },
    })
    await moving.work([busy]).ready
    const reasonOfDeath = async () => {
      let dead: string | undefined
      const stop = moving.on('job.dead', ({ reason }) => {
        dead = reason
      })
      await moving.enqueue(busy)
      const reason = await until('it is dead', async () => {
        await clock.advance(50)
        return dead
      })
      stop()
      return reason
    }
    expect(await reasonOfDeath()).toContain('attempt 2 of 2')
    await setPolicy(moving.db, SEND, { policy: { attempts: 1 }, setBy: 'ada' })
    await clock.advance(EVERY_MS)
    await until('it is followed', () => moving.runtime.policies.for(busy.policy, job).attempts === 1 || undefined)
    expect(await reasonOfDeath()).toContain('attempt 1 of 1')
  })

  it('a policy that cannot be read changes nothing, and is told', async () => {
    const { runtime, db, next } = await openRuntime(kind)
    await setPolicy(db, SEND, { policy: { attempts: 2 }, setBy: 'ada' })
    await followPolicies(runtime)
    await setPolicy(db, SEND, { policy: { attempts: 'two' }, setBy: 'a newer version' })
    const told = next('error')
    await followPolicies(runtime)
    expect(await told).toMatchObject({ where: 'reading the policy of job send' })
    expect(runtime.policies.for(send.policy, job).attempts).toBe(2)
  })
})
