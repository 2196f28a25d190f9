// The desk beside the workers: one process with the API, one with all who look at it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('./desk-child.mjs', import.meta.url))

/**
 * @typedef {{ readers: number, listeners: number, everyMs: number }} Audience
 * @typedef {{ perSecond: number, p95: number, failed: number, events: number }} Seen
 */

/**
 * Resolves when all of them look.
 * @param {string} address of the database
 * @param {Audience} audience
 * @returns {Promise<() => Promise<Seen>>} ends both, and tells what was seen
 */
export async function openDeskProcesses(address, audience) {
  const server = new DeskProcess()
  const readers = new DeskProcess()
  try {
    const url = await server.ask('serve', { address })
    await readers.ask('read', { url, ...audience })
  } catch (error) {
    server.kill()
    readers.kill()
    throw error
  }
  return async () => {
    try {
      return await readers.ask('close', {})
    } finally {
      await server.ask('close', {}).catch(() => {})
      readers.kill()
      server.kill()
    }
  }
}

class DeskProcess {
  #child = fork(CHILD, { env: { ...process.env, NODE_ENV: 'production' } })
  #nextId = 1
  /** Never resolves. */
  #ended = once(this.#child, 'exit').then(([code, signal]) => {
    throw new Error(`the desk's process ended (${signal ?? code})`)
  })

  constructor() {
    this.#ended.catch(() => {})
  }

  /** One at a time. @param {string} command @param {object} asked @returns {Promise<any>} */
  async ask(command, asked) {
    const answered = once(this.#child, 'message')
    if (this.#child.connected) this.#child.send({ id: this.#nextId++, command, asked })
    const [{ answer, error }] = await Promise.race([answered, this.#ended])
    if (error !== undefined) throw new Error(error)
    return answer
  }

  kill() {
    this.#child.kill('SIGKILL')
  }
}
