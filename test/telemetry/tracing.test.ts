// Spans as an SDK receives them: where a job came from, how each attempt went, and nothing of its payload. Without an SDK there are
// none, and nothing is stored.
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defineJob, TransientError, ValidationError } from '../../src/index.js'
import { sql } from '../../src/ledger/database.js'
import { linkTo, traceparentOf } from '../../src/telemetry/traceparent.js'
import { tracing } from '../../src/telemetry/tracing.js'
import { type Library, openLibrary } from '../support/library.js'

const TIMEOUT = { timeout: 180_000 }
const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const manager = new AsyncLocalStorageContextManager()

let library: Library
beforeAll(async () => {
  library = await openLibrary('memory', { leaseMs: 120_000 })
}, 120_000)
afterAll(async () => {
  trace.disable()
  context.disable()
  await provider.shutdown()
})

const tracesKept = async () => {
  const TRACES = sql`SELECT trace FROM redrive.job ORDER BY line`
  return (await library.db.query<{ trace: string | null }>(TRACES)).map(row => row.trace)
}

it('without an SDK there are no spans, and nothing is kept with a job', TIMEOUT, async () => {
  expect(tracing.isActive).toBe(false)
  await library.redrive.enqueue(defineJob({ name: 'plain', queue: 'untraced' }), null, { delayMs: 60_000 })
  expect(await tracesKept()).toEqual([null])
})

describe('with an SDK', () => {
  beforeAll(() => {
    context.setGlobalContextManager(manager.enable())
    trace.setGlobalTracerProvider(provider)
  })

  it(
    'an attempt is linked to where its job was enqueued, through retries, and holds what its handler records',
    TIMEOUT,
    async () => {
      const { redrive, next } = library
      expect(tracing.isActive).toBe(true)
      const job = defineJob({
        name: 'traced',
        queue: 'traced',
        retry: { attempts: 2, backoff: { type: 'immediate' }, minMs: 0 },
        handler: async (_: { card: string }, { attempt }) => {
          await Promise.resolve()
          trace.getTracer('user').startSpan(`inner ${attempt}`).end()
          if (attempt === 1) throw new TransientError('login failed: password=hunter2')
        },
      })
      const worker = redrive.work([job], { name: 'w' })
      const done = next('job.completed', event => event.job.name === 'traced')
      const { id } = await trace.getTracer('user').startActiveSpan('request', async span => {
        const enqueued = await redrive.enqueue(job, { card: '4111' })
        span.end()
        return enqueued
      })
      await done
      await worker.stop()
      const spans = exporter.getFinishedSpans()
      const named = (name: string) => spans.filter(span => span.name === name)
      const [request] = named('request')
      const [enqueue] = named('enqueue traced')
      const [first, second] = named('process traced')
      expect(enqueue).toMatchObject({
        kind: SpanKind.PRODUCER,
        parentSpanContext: { spanId: request?.spanContext().spanId },
        attributes: {
          'messaging.system': 'redrive',
          'messaging.operation.name': 'enqueue',
          'messaging.operation.type': 'send',
          'messaging.destination.name': 'traced',
          'messaging.message.id': id,
          'redrive.job.name': 'traced',
        },
      })
      for (const [span, number] of [
        [first, 1],
        [second, 2],
      ] as const) {
        expect(span).toMatchObject({
          kind: SpanKind.CONSUMER,
          links: [{ context: { traceId: enqueue?.spanContext().traceId, spanId: enqueue?.spanContext().spanId } }],
          attributes: {
            'messaging.operation.type': 'process',
            'redrive.job.attempt': number,
            'messaging.client.id': 'w',
          },
        })
        expect(span?.parentSpanContext).toBeUndefined()
        expect(named(`inner ${number}`)[0]?.parentSpanContext?.spanId).toBe(span?.spanContext().spanId)
      }
      expect(first).toMatchObject({
        status: { code: SpanStatusCode.ERROR, message: 'login failed: password=[redacted]' },
        attributes: {
          'redrive.outcome': 'failed',
          'error.type': 'TransientError',
          'redrive.failure.kind': 'transient',
        },
        events: [{ name: 'exception', attributes: { 'exception.type': 'TransientError' } }],
      })
      expect(second).toMatchObject({
        status: { code: SpanStatusCode.UNSET },
        attributes: { 'redrive.outcome': 'succeeded' },
      })
      const told = JSON.stringify(spans.map(({ attributes, events, status }) => ({ attributes, events, status })))
      expect(told).not.toMatch(/4111|hunter2/)
    },
  )

  it('a call in place belongs to its caller; an enqueue that fails says so; many are one', TIMEOUT, async () => {
    const { redrive } = library
    exporter.reset()
    const job = defineJob({ name: 'here', queue: 'here', handler: () => 1 })
    await trace.getTracer('user').startActiveSpan('caller', async span => {
      await redrive.perform(job, null)
      span.end()
    })
    const [process, caller] = exporter.getFinishedSpans()
    expect(process).toMatchObject({ name: 'process here', kind: SpanKind.INTERNAL })
    expect(process?.parentSpanContext?.spanId).toBe(caller?.spanContext().spanId)

    exporter.reset()
    await redrive.enqueueMany(job, [{ payload: 1 }, { payload: 2, options: { uniqueKey: 'k', delayMs: 60_000 } }])
    const [many] = exporter.getFinishedSpans()
    expect(many?.attributes).toMatchObject({ 'messaging.batch.message_count': 2 })
    const from = traceparentOf(many?.spanContext() as never)
    expect((await tracesKept()).filter(kept => kept === from)).toHaveLength(2)

    exporter.reset()
    const tx = { query: () => Promise.reject(new ValidationError('the transaction is over')) }
    await expect(redrive.enqueue(job, null, { tx })).rejects.toThrow()
    expect(exporter.getFinishedSpans()[0]).toMatchObject({
      name: 'enqueue here',
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'ValidationError' },
    })
  })
})

it('what is kept with a job is believed only if it is a traceparent', () => {
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  expect(linkTo(parent)).toEqual([
    {
      context: {
        traceId: '0af7651916cd43dd8448eb211c80319c',
        spanId: 'b7ad6b7169203331',
        traceFlags: 1,
        isRemote: true,
      },
    },
  ])
  expect(traceparentOf(linkTo(parent)[0]?.context as never)).toBe(parent)
  for (const strange of [
    undefined,
    '',
    'x',
    `${parent}-more`,
    parent.replace('0af7', '0AF7'),
    parent.replace(/[a-f\d]/g, '0'),
  ])
    expect(linkTo(strange)).toEqual([])
})
