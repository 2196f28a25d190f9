// Mounted in servers that people have: Node's own, Express, Fastify. Each keeps its own routes and its own body parsing.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHttp } from '../../src/http/index.js'
import { askOf, type Desk, openDesk } from './support/desk.js'

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory')
})

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise(resolve => server.close(resolve)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const TOKENS = { tokens: 'root:admin:root-secret', env: {} }

const SERVERS: Readonly<Record<string, () => Promise<string>>> = {
  'node:http': async () => {
    const ours = getRequestListener(createHttp(desk.redrive, { ...TOKENS, basePath: '/ops' }).fetch)
    return listening(
      createServer((request, response) => {
        if (request.url?.startsWith('/ops/')) void ours(request, response)
        else response.end('"yours"')
      }),
    )
  },

  // Express takes the path it is mounted at away, so there is no basePath. Mounted before its own body parser.
  Express: async () => {
    const app = express()
    const ours = getRequestListener(createHttp(desk.redrive, TOKENS).fetch)
    app.use('/ops', (request, response) => void ours(request, response))
    app.use(express.json())
    app.use((_request, response) => void response.end('"yours"'))
    return listening(createServer(app))
  },

  // Fastify reads bodies unless a parser says otherwise; in a scope of its own this is so for our path only.
  Fastify: async () => {
    const app = fastify()
    const ours = getRequestListener(createHttp(desk.redrive, { ...TOKENS, basePath: '/ops' }).fetch)
    await app.register((scope, _options, ready) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
      scope.all('/ops/*', async (request, reply) => {
        reply.hijack()
        await ours(request.raw, reply.raw)
      })
      ready()
    })
    app.get('/*', async () => '"yours"')
    closing.push(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
}

describe.each(Object.entries(SERVERS))('%s', (_, start) => {
  it('answers below its path, with bodies, errors and headers as they are; the rest is theirs', async () => {
    const origin = await start()
    const ask = (what: string, asked?: object) => askOf(fetch, what, asked, origin)
    const base = '//ops/api/queue-admin'
    expect((await ask(`GET ${base}/me`)).body).toEqual({ name: 'root', scopes: ['admin'] })
    const enqueued = await ask(`POST ${base}/jobs`, { body: { name: 'mounted', payload: { text: 'ä😀' } } })
    expect(enqueued.status).toBe(201)
    expect((await ask(`GET ${base}/jobs/${enqueued.body.id}`)).body.payload).toEqual({ text: 'ä😀' })
    expect((await ask(`POST ${base}/queues/a%2Fb%20c/pause`)).body).toMatchObject({ name: 'a/b c', paused: true })
    expect(await ask(`GET ${base}/me`, { token: null })).toMatchObject({
      status: 401,
      body: { code: 'UNAUTHENTICATED' },
    })
    expect(await ask(`POST ${base}/jobs`, { body: 'x=1', headers: { 'content-type': 'text/plain' } })).toMatchObject({
      status: 415,
    })
    const large = `{"name":"x","payload":"${'x'.repeat(1_200_000)}"}`
    expect(
      (await ask(`POST ${base}/jobs`, { body: large, headers: { 'content-type': 'application/json' } })).status,
    ).toBe(413)
    expect((await ask('GET //ops/healthz', { token: null })).headers.get('x-content-type-options')).toBe('nosniff')
    expect((await ask('GET //other')).body).toBe('yours')
  })
})
