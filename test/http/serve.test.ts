// A server that ends: what is under way is answered, and connections that are kept for a next request do not keep it.
import { Agent, get, type IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { serve } from '../../src/http/index.js'
import { gate } from '../support/gate.js'

/** So long a connection without a request: the server must not wait for that. */
const NODE_KEEPS_MS = 5_000

it(
  'answers what is under way and then ends at once, however long connections would be kept',
  async () => {
    const asked = gate()
    const answer = gate()
    const { url, close } = await serve(
      {
        fetch: async () => {
          asked.open()
          await answer.passed
          return new Response('done')
        },
        close: () => {},
      } as unknown as Parameters<typeof serve>[0],
      { port: 0 },
    )
    const agent = new Agent({ keepAlive: true })
    const response = new Promise<IncomingMessage>((resolve, reject) => get(url, { agent }, resolve).on('error', reject))
    await asked.passed
    let ended = false
    const closing = close().then(() => {
      ended = true
    })
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(ended).toBe(false)
    answer.open()
    expect((await response).resume().statusCode).toBe(200)
    await closing
    agent.destroy()
  },
  NODE_KEEPS_MS,
)
