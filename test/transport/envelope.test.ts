// What is said of a job in a message comes back as it was said; what is wrong with a message is said in words.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/domain/clock.js'
import { newJobId } from '../../src/domain/ids.js'
import type { NewJob } from '../../src/domain/job.js'
import type { Delivery } from '../../src/transport/broker.js'
import { read, storable, toMessage } from '../../src/transport/envelope.js'

const job: NewJob = {
  id: newJobId(),
  queue: 'mail',
  name: 'send',
  priority: 7,
  payloadText: '{"to":"ann"}',
  tenant: 'acme',
  user: 'ann',
  project: 'site',
  service: 'smtp',
  maxAttempts: 4,
  trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
}

const delivery = (change: Partial<Delivery> = {}): Delivery => ({
  queue: 'mail',
  priority: 5,
  headers: { 'redrive-name': 'send' },
  body: '{}',
  redelivered: false,
  ...change,
})

const readOf = (change: Partial<Delivery>) => read(delivery(change), systemClock)

describe('the envelope', () => {
  it('keeps all that is said of a job', () => {
    const { queue, priority, headers, body } = toMessage(job, 1_700_000_000_000)
    const reading = read({ queue, priority, headers, body, redelivered: false }, systemClock)
    expect(reading).toEqual({ type: 'job', job: { ...job, createdAt: 1_700_000_000_000 } })
  })

  it('makes the same id of the same message id, and another for another queue', () => {
    const idOf = (queue: string, id: string) =>
      readOf({ queue, headers: { 'redrive-name': 'send', 'message-id': id } }).job.id
    expect(idOf('mail', 'order 7')).toBe(idOf('mail', 'order 7'))
    expect(idOf('mail', 'order 7')).not.toBe(idOf('post', 'order 7'))
    expect(idOf('mail', job.id.toUpperCase())).toBe(job.id)
  })

  it.each([
    ['no redrive-name', { headers: {} }],
    ['its name is not', { headers: { 'redrive-name': 'a\u0000b' } }],
    ['its redrive-id is not a UUID', { headers: { 'redrive-name': 'send', 'redrive-id': '7' } }],
    ['its priority is 11', { priority: 11 }],
    ['its priority is 1.5', { priority: 1.5 }],
    ['more than 1048576 bytes', { body: JSON.stringify('x'.repeat(1_048_576)) }],
    ['its redrive-max-attempts', { headers: { 'redrive-name': 'send', 'redrive-max-attempts': 'many' } }],
    ['its redrive-max-attempts', { headers: { 'redrive-name': 'send', 'redrive-max-attempts': '' } }],
    ['its redrive-created-at', { headers: { 'redrive-name': 'send', 'redrive-created-at': 'yesterday' } }],
    ['its redrive-tenant', { headers: { 'redrive-name': 'send', 'redrive-tenant': 'x'.repeat(513) } }],
    ['its redrive-service', { headers: { 'redrive-name': 'send', 'redrive-service': '' } }],
  ] as [string, Partial<Delivery>][])('says what is wrong: %s', (words, change) => {
    expect(readOf(change)).toMatchObject({ type: 'malformed', problem: expect.stringContaining(words) })
  })

  it('takes no offence at a trace that is none', () => {
    const reading = readOf({ headers: { 'redrive-name': 'send', traceparent: 'nonsense' } })
    expect(reading).toMatchObject({ type: 'job' })
    expect(reading.job.trace).toBeUndefined()
  })

  it('keeps JSON as it came, and anything else as text', () => {
    expect(storable('{"a" : 1e2}')).toEqual({ isJson: true, payloadText: '{"a" : 1e2}' })
    expect(storable('no { JSON')).toEqual({ isJson: false, payloadText: '{"raw":"no { JSON"}' })
    const deep = '['.repeat(3_000) + ']'.repeat(3_000)
    expect(storable(deep)).toEqual({ isJson: false, payloadText: JSON.stringify({ raw: deep }) })
    expect(storable(JSON.stringify('[{"'.repeat(5_000))).isJson).toBe(true)
    expect(storable('x'.repeat(2_000_000)).payloadText.length).toBeLessThan(70_000)
  })
})
