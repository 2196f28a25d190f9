// A contestant's process as its parent sees it: asked to do things, and counted.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('./child.mjs', import.meta.url))
const CLOSE_LIMIT_MS = 15_000

/** @type {Set<ContestantProcess>} */
const running = new Set()

/** When the bench is interrupted: what was under way fails, and is cleaned up after. */
export function killEveryProcess() {
  for (const contestant of running) contestant.kill()
}

export class ContestantProcess {
  #child
  #nextId = 1
  /** @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void }>} */
  #asked = new Map()
  /** @type {(() => void) | undefined} */
  #onHandled
  /** @type {((error: Error) => void) | undefined} */
  #onEnded
  /** @type {Error | undefined} */
  #ended
  handled = 0
  lastHandledAt = 0

  /**
   * @param {string} contestant
   * @param {string} address
   * @param {Record<string, unknown> & { nodeFlags?: string[], node?: string }} options `node`: another than ours
   */
  constructor(contestant, address, { nodeFlags, node, ...options }) {
    this.#child = fork(CHILD, [contestant, address, JSON.stringify(options)], {
      ...(nodeFlags && { execArgv: nodeFlags }),
      ...(node && { execPath: node }),
      env: { ...process.env, NODE_ENV: 'production' },
    })
    running.add(this)
    this.ready = new Promise((resolve, reject) => {
      this.#asked.set(0, { resolve, reject })
    })
    this.#child.on('message', (/** @type {any} */ message) => this.#hear(message))
    this.#child.on('error', error => this.#end(error))
    this.#child.on('exit', (code, signal) => this.#end(new Error(`its process ended (${signal ?? code})`)))
  }

  get pid() {
    return this.#child.pid
  }

  /** @param {{ ready?: true, handled?: number, at: number, id: number, answer?: unknown, error?: string }} message */
  #hear(message) {
    if (message.handled !== undefined) {
      this.handled = message.handled
      this.lastHandledAt = message.at
      this.#onHandled?.()
      return
    }
    const asked = this.#asked.get(message.ready ? 0 : message.id)
    this.#asked.delete(message.ready ? 0 : message.id)
    if (message.error === undefined) asked?.resolve(message.answer)
    else asked?.reject(new Error(message.error))
  }

  /** @param {Error} error */
  #end(error) {
    running.delete(this)
    this.#ended = error
    for (const { reject } of this.#asked.values()) reject(error)
    this.#asked.clear()
    this.#onEnded?.(error)
  }

  /** @param {string} command @param {Record<string, unknown>} [asked] @returns {Promise<any>} */
  ask(command, asked = {}) {
    if (this.#ended) return Promise.reject(this.#ended)
    const id = this.#nextId
    this.#nextId += 1
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#child.send({ id, command, asked })
    })
  }

  /** @param {() => void} listener */
  onHandled(listener) {
    this.#onHandled = listener
  }

  /** @param {(error: Error) => void} listener also told if it has ended before */
  onEnded(listener) {
    this.#onEnded = listener
    if (this.#ended) listener(this.#ended)
  }

  /** As the machine or an impatient operator does it. */
  kill() {
    this.#end(new Error('its process was killed'))
    this.#child.kill('SIGKILL')
  }

  async close() {
    if (this.#ended) return
    const asked = this.ask('close')
    this.#ended = new Error('its process was closed')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_LIMIT_MS)
    await asked.catch(() => {})
    clearTimeout(timer)
    this.#child.kill('SIGKILL')
  }
}

/**
 * Waits until the workers together have run so many handlers.
 * @param {readonly ContestantProcess[]} workers
 * @param {number} count
 * @param {number} limitMs
 * @returns {Promise<number>} when the last of them had run
 */
export function untilHandled(workers, count, limitMs) {
  const total = () => workers.reduce((sum, worker) => sum + worker.handled, 0)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`only ${total()} of ${count} handlers had run after ${limitMs / 1000} s`)),
      limitMs,
    )
    const check = () => {
      if (total() < count) return
      clearTimeout(timer)
      resolve(Math.max(...workers.map(worker => worker.lastHandledAt)))
    }
    /** @param {Error} error */
    const fail = error => {
      clearTimeout(timer)
      reject(error)
    }
    for (const worker of workers) {
      worker.onHandled(check)
      worker.onEnded(fail)
    }
    check()
  })
}
