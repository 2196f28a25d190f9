// BullMQ on Redis, its first home. Redis flushes to disk once a second, so a second of work can be lost.
import { Redis } from 'ioredis'
import { openBull } from './bullmq.mjs'

export { permanent } from './bullmq.mjs'
export const label = 'BullMQ on Redis'
export const store = 'redis'

export async function prepare() {}

/** @param {string} address */
export async function open(address) {
  const connection = new Redis(address, { maxRetriesPerRequest: null })
  const client = await openBull({ connection }, [])
  return {
    ...client,
    async close() {
      await client.close()
      connection.disconnect()
    },
  }
}
