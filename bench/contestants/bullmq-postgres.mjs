// BullMQ on Postgres.
import { createPostgresBackend, Queue } from 'bullmq'
import { openBull } from './bullmq.mjs'

export { permanent } from './bullmq.mjs'
export const label = 'BullMQ on Postgres'
export const store = 'postgres'

/** @param {string} connectionString */
export async function prepare(connectionString) {
  const queue = new Queue('bench', { connection: { connectionString, migrate: true } }, createPostgresBackend)
  await queue.waitUntilReady()
  await queue.close()
}

/** @param {string} connectionString @param {{ processes?: number }} options */
export const open = (connectionString, { processes = 1 } = {}) =>
  openBull({ connection: { connectionString, max: processes > 1 ? 8 : 20 } }, [createPostgresBackend])
