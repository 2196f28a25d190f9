// The API in a process of its own, or those who look at it in another. Started by desk-processes.mjs.
import { setTimeout as sleep } from 'node:timers/promises'
import { createHttp, serve } from '../../dist/http/index.js'
import { openRedrive } from '../../dist/index.js'
import { now } from './clock.mjs'
import { percentile } from './statistics.mjs'

const SECRET = 'a-secret-of-the-bench'
const headers = { authorization: `Bearer ${SECRET}` }

/** What they look at, one after the other; `:id` is a letter of the list they saw last. */
const PATHS = [
  '/statistics',
  '/dead-letter-queue',
  '/dead-letter-queue/:id',
  '/dead-letter-queue?queue=queue-3&status=pending',
  '/groups',
  '/dead-letter-queue/:id',
  '/dead-letter-queue?kind=network&limit=20',
  '/failure-reasons',
  '/jobs?limit=20',
  '/queues',
]

const roles = {
  /** @param {{ address: string }} asked */
  async serve({ address }) {
    const redrive = await openRedrive({ database: address })
    const served = await serve(createHttp(redrive, { tokens: `bench:read:${SECRET}` }), { port: 0 })
    const close = async () => {
      await served.close()
      await redrive.close()
    }
    return { answer: served.url, close }
  },

  /**
   * `everyMs`: how long each waits between two looks; 0: not at all.
   * @param {{ url: string, readers: number, listeners: number, everyMs: number }} asked
   */
  async read({ url, readers, listeners, everyMs }) {
    const base = `${url}/api/queue-admin`
    const stop = new AbortController()
    /** @type {Promise<void>[]} */
    const all = []
    const seen = { times: /** @type {number[]} */ ([]), failed: 0, events: 0 }
    let id = ''
    const look = async (/** @type {string} */ path) => {
      const startedAt = now()
      const response = await fetch(base + path.replace(':id', id), { headers })
      const body = /** @type {any} */ (await response.json())
      if (!response.ok) {
        seen.failed += 1
        return
      }
      seen.times.push(now() - startedAt)
      if (path === '/dead-letter-queue') id = body.items[0]?.id ?? id
    }
    await look('/dead-letter-queue')
    const reader = async (/** @type {number} */ nth) => {
      await sleep((nth / readers) * everyMs, undefined, { signal: stop.signal }).catch(() => {})
      for (let i = nth; !stop.signal.aborted; i += 1) {
        await look(PATHS[i % PATHS.length] ?? '')
        await sleep(everyMs, undefined, { signal: stop.signal }).catch(() => {})
      }
    }
    // What it reads to the end is pushed, not returned: an async function would wait for it.
    const listener = async () => {
      const { ok, body } = await fetch(`${base}/events`, { headers, signal: stop.signal })
      if (!ok || !body) seen.failed += 1
      else all.push(listen(body))
    }
    const listen = async (/** @type {AsyncIterable<Uint8Array>} */ body) => {
      try {
        for await (const chunk of body) seen.events += chunk.length > 0 ? 1 : 0
      } catch (error) {
        if (!stop.signal.aborted) throw error
      }
    }
    await Promise.all(Array.from({ length: listeners }, listener))
    all.push(...Array.from({ length: readers }, (_, nth) => reader(nth)))
    const beganAt = now()
    const close = async () => {
      const seconds = (now() - beganAt) / 1000
      const answered = seen.times.length
      stop.abort()
      await Promise.all(all)
      return {
        perSecond: answered / seconds,
        p95: percentile(seen.times, 0.95) ?? 0,
        failed: seen.failed,
        events: seen.events,
      }
    }
    return { answer: true, close }
  },
}

/** @type {(() => Promise<unknown>) | undefined} */
let close
process.on('message', async (/** @type {{ id: number, command: string, asked: any }} */ { id, command, asked }) => {
  try {
    if (command === 'close') {
      process.send?.({ id, answer: await close?.() })
      process.disconnect()
      return
    }
    const started = await roles[/** @type {keyof typeof roles} */ (command)](asked)
    close = started.close
    process.send?.({ id, answer: started.answer })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
})
process.on('disconnect', () => process.exit())
