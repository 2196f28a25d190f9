// Spans through `@opentelemetry/api`, which is only an interface: where no SDK is installed there is nobody to tell, and that is
// all that is looked at. Named by the messaging conventions. Never a payload; messages and stacks are redacted.
import {
  type Attributes,
  context,
  type Link,
  ProxyTracerProvider,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { Failure } from '../domain/failure.js'
import type { Job, NewJob } from '../domain/job.js'
import type { Outcome } from '../domain/outcome.js'
import type { AttemptSpan, Tracing } from '../domain/tracing.js'
import { redactText } from '../policy/redact.js'
import { linkTo, traceparentOf } from './traceparent.js'

const NAME = 'redrive'

/** What stands in for an SDK where there is none; there is one of it. */
const NOBODY = new ProxyTracerProvider().getDelegate()

export const tracing: Tracing = {
  get isActive() {
    const provider = trace.getTracerProvider()
    return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== NOBODY
  },

  enqueue(jobs, publish) {
    const [first] = jobs
    if (!first) return publish(jobs)
    const options = { kind: SpanKind.PRODUCER, attributes: sending(jobs, first) }
    return tracer().startActiveSpan(`enqueue ${first.queue}`, options, async span => {
      try {
        const from = traceparentOf(span.spanContext())
        return await publish(from === undefined ? jobs : jobs.map(job => ({ ...job, trace: from })))
      } catch (error) {
        failed(span, { type: (error as Error)?.name ?? 'Error', message: String((error as Error)?.message ?? error) })
        throw error
      } finally {
        span.end()
      }
    })
  },

  attempt(job, worker, inPlace = false) {
    // Retries may be hours apart: an attempt is a trace of its own, linked to where its job came from.
    const links: Link[] = linkTo(job.trace)
    const kind = inPlace ? SpanKind.INTERNAL : SpanKind.CONSUMER
    const attributes = processing(job, worker)
    return new OpenAttempt(tracer().startSpan(`process ${job.queue}`, { kind, attributes, links, root: !inPlace }))
  },
}

class OpenAttempt implements AttemptSpan {
  readonly #span: Span

  constructor(span: Span) {
    this.#span = span
  }

  within<T>(work: () => T): T {
    return context.with(trace.setSpan(context.active(), this.#span), work)
  }

  end(outcome: Outcome): void {
    this.#span.setAttribute('redrive.outcome', outcome.type)
    if ('failure' in outcome) failed(this.#span, outcome.failure)
    this.#span.end()
  }
}

const tracer = (): Tracer => trace.getTracer(NAME)

const about = (queue: string, name: string): Attributes => ({
  'messaging.system': NAME,
  'messaging.destination.name': queue,
  'redrive.job.name': name,
})

const sending = (jobs: readonly NewJob[], { id, queue, name }: NewJob): Attributes => ({
  ...about(queue, name),
  'messaging.operation.name': 'enqueue',
  'messaging.operation.type': 'send',
  ...(jobs.length === 1 ? { 'messaging.message.id': id } : { 'messaging.batch.message_count': jobs.length }),
})

const processing = ({ id, queue, name, attempt }: Job, worker: string): Attributes => ({
  ...about(queue, name),
  'messaging.operation.name': 'process',
  'messaging.operation.type': 'process',
  'messaging.message.id': id,
  'messaging.client.id': worker,
  'redrive.job.attempt': attempt,
})

function failed(span: Span, failure: Pick<Failure, 'type' | 'message'> & Partial<Failure>): void {
  const { type, kind, fingerprint } = failure
  const message = redactText(failure.message)
  const stack = failure.stack === undefined ? {} : { stack: redactText(failure.stack) }
  span.recordException({ name: type, message, ...stack })
  span.setStatus({ code: SpanStatusCode.ERROR, message })
  span.setAttribute('error.type', type)
  if (kind !== undefined) span.setAttribute('redrive.failure.kind', kind)
  if (fingerprint !== undefined) span.setAttribute('redrive.failure.group', fingerprint)
}
