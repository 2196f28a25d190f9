// NOTIFY serialises commits, so it is sent only when a lane goes from empty to not, and polling is the truth.
// Seen red: with a WAKE that does not ask whether the lane was empty, and with a worker that does not look again by itself.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob, openRedrive } from '../../src/index.js'
import { wakeChannel } from '../../src/ledger/wake-channel.js'
import { openRuntime, silent } from '../support/runtime.js'
import { aJob } from '../support/story.js'

describe('pitfall 10: NOTIFY serialises all commits', () => {
  it('pitfall 10: a thousand jobs published one by one onto a backlog wake workers a few times, not a thousand', async () => {
    const { db, url, runtime } = await openRuntime('server')
    const listener = new pg.Client({ connectionString: url })
    await listener.connect()
    onTestFinished(() => listener.end())
    let heard = 0
    listener.on('notification', () => {
      heard += 1
    })
    await listener.query(`LISTEN ${wakeChannel(db)}`)
    for (let nth = 0; nth < 1_000; nth += 1) await runtime.transport.publish([aJob()])
    await listener.query('SELECT 1') // what was notified before is heard by now
    expect(heard).toBeGreaterThanOrEqual(1)
    expect(heard).toBeLessThanOrEqual(5)
  })

  it('pitfall 10: without LISTEN, as behind a pooler, polling alone finds work', async () => {
    const { url = '' } = await openRuntime('server')
    const [producer, consumer] = await Promise.all(
      [1, 2].map(() => openRedrive({ database: url, env: {}, logger: silent, listen: false, pollMs: 50 })),
    )
    if (!producer || !consumer) throw new Error('not open')
    onTestFinished(async () => {
      await Promise.all([producer.close(), consumer.close()])
    })
    const job = defineJob({ name: 'send', handler: async () => null })
    const worker = consumer.work([job])
    await worker.ready
    const done = new Promise<void>(resolve => void consumer.on('job.completed', () => resolve()))
    await producer.enqueue(job, null)
    await done
  })
})
