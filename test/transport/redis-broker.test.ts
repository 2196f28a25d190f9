// Redis as a carrier, on a real Redis: what is published arrives once and in line, stays in hand while its holder lives,
// and goes to another when that one gives it back or dies.
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { Delivery } from '../../src/transport/broker.js'
import { openProxy } from '../support/proxy.js'
import { aMessage, hand, redisScene } from '../support/redis.js'
import { until } from '../support/until.js'

const bodies = (deliveries: readonly Delivery[]) => deliveries.map(({ body }) => body)
const numbered = (many: number, message = {}) =>
  Array.from({ length: many }, (_, index) => aMessage({ body: `${index}`, ...message }))

test('a message arrives as it was published, and is gone when it is acknowledged', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker()
  const { consumer, take } = hand(redis)
  const headers = {
    'redrive-id': '0190d3a5-1111-7000-8000-000000000001',
    'redrive-name': 'send',
    'redrive-tenant': 'ö👍',
  }
  await redis.publish([aMessage({ priority: 7, headers, body: '{"text":"a\\u0000b 👩‍👩‍👧‍👦"}' })])
  const [delivery] = await take(1)
  expect(delivery).toMatchObject({ queue: 'mail', priority: 7, headers, redelivered: false })
  expect(delivery?.body).toBe('{"text":"a\\u0000b 👩‍👩‍👧‍👦"}')
  expect(await raw.xlen(`${prefix}mail:7`)).toBe(1)
  expect(await consumer.acknowledge(delivery ? [delivery] : [])).toEqual([])
  expect(await raw.xlen(`${prefix}mail:7`)).toBe(0)
  expect(await raw.xpending(`${prefix}mail:7`, 'redrive', '-', '+', 10)).toEqual([])
})

test('messages published before anyone listened are not missed', async () => {
  const { broker } = await redisScene()
  await broker().publish(numbered(3))
  expect(bodies(await hand(broker()).take(3))).toEqual(['0', '1', '2'])
})

test('higher priority first, then first come; queues are apart', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  const asked = [5, 0, 10, 3, 5, 10, 0, 7]
  await redis.publish(asked.map((priority, index) => aMessage({ priority, body: `${index}` })))
  await redis.publish([aMessage({ queue: 'other', body: 'of the other' })])
  const { take } = hand(redis, { queues: ['mail', 'other'] })
  await take(1, 'other')
  expect(bodies(await take(8))).toEqual(['2', '5', '7', '0', '4', '3', '1', '6'])
})

test('a low priority is not passed over for ever', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  const { consumer, take } = hand(redis, { prefetch: 5 })
  await redis.publish([...numbered(400, { priority: 9 }), aMessage({ priority: 1, body: 'low' })])
  for (let served = 0; ; served += 1) {
    const batch = await take(1)
    await consumer.acknowledge(batch)
    if (batch[0]?.body === 'low') return expect(served).toBeLessThan(400)
  }
})

test('no more are in hand than was said', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  await redis.publish(Array.from({ length: 110 }, (_, index) => aMessage({ priority: index % 11 })))
  const { consumer, take } = hand(redis, { prefetch: 10 })
  const first = await take(10)
  expect(await redis.depth('mail')).toBe(100)
  expect(consumer.arrived('mail')).toBe(0)
  await consumer.acknowledge(first.slice(0, 4))
  const more = await take(4)
  expect(await redis.depth('mail')).toBe(96)
  consumer.setPrefetch?.(30)
  await take(20)
  await consumer.acknowledge([...first.slice(4), ...more])
  await take(10)
  expect(await redis.depth('mail')).toBe(66)
})

test('an idle consumer is woken, and no two get the same', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  let wakes = 0
  const onWake = () => {
    wakes += 1
  }
  const hands = Array.from({ length: 4 }, () => hand(broker(), { prefetch: 8, onWake }))
  const got: string[] = []
  await redis.publish(numbered(300))
  await until('all were taken', async () => {
    for (const { consumer } of hands) {
      const batch = consumer.take('mail', 3)
      got.push(...bodies(batch))
      expect(await consumer.acknowledge(batch)).toEqual([])
    }
    return got.length >= 300
  })
  expect(got.toSorted((a, b) => Number(a) - Number(b))).toEqual(numbered(300).map(({ body }) => body))
  expect(wakes).toBeGreaterThan(0)
  expect(await redis.depth('mail')).toBe(0)
})

test('depth counts what is in nobody’s hands, whoever asks', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  expect(await redis.depth('mail')).toBe(0)
  await redis.publish([...numbered(3), aMessage({ priority: 9 }), aMessage({ queue: 'other' })])
  expect(await redis.depth('mail')).toBe(4)
  const { consumer, take } = hand(broker(), { prefetch: 2 })
  await take(2)
  expect(await redis.depth('mail')).toBe(2)
  await consumer.close()
  expect(await redis.depth('mail')).toBe(4)
})

test('what is given back untouched comes first again, as new; what somebody had does not come as new', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  await redis.publish(numbered(4))
  const first = hand(broker(), { prefetch: 3 })
  const [had] = await first.take(1)
  await until('two more have arrived', () => first.consumer.arrived('mail') === 2)
  await first.consumer.giveBack(had ? [had] : [])
  await first.consumer.close()
  const got = await hand(redis).take(4)
  expect(got.map(({ body, redelivered }) => [body, redelivered])).toEqual([
    ['0', true],
    ['1', false],
    ['2', false],
    ['3', false],
  ])
})

test('a paused queue is not read, the others are; then it goes on where it was', async () => {
  const { broker } = await redisScene()
  const redis = broker()
  const { consumer, take } = hand(redis, { queues: ['mail', 'other'], prefetch: 4 })
  await redis.publish(numbered(10))
  await until('some have arrived', () => consumer.arrived('mail') > 0)
  consumer.setPaused('mail', true)
  await until('they went back', async () => (await redis.depth('mail')) === 10)
  expect(consumer.arrived('mail')).toBe(0)
  await redis.publish([aMessage({ queue: 'other' })])
  await consumer.acknowledge(await take(1, 'other'))
  expect(await redis.depth('mail')).toBe(10)
  consumer.setPaused('mail', false)
  const got = await take(4)
  expect(got.map(({ body, redelivered }) => [body, redelivered])).toEqual(
    ['0', '1', '2', '3'].map(body => [body, false]),
  )
})

test('a dead consumer’s messages go to another, once it was silent for long enough, and say so', async () => {
  const { broker, url, raw, prefix } = await redisScene()
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const dying = hand(broker({ url: proxy.url, claimAfterMs: 3_000 }), { prefetch: 2 })
  const redis = broker({ claimAfterMs: 3_000 })
  await redis.publish(numbered(2))
  const held = await dying.take(2)
  proxy.freeze()
  const living = hand(redis)
  const got = await living.take(2)
  expect(got.map(({ body, redelivered }) => [body, redelivered])).toEqual([
    ['0', true],
    ['1', true],
  ])
  // The silent one gave them up by itself, without a word of Redis.
  await until('it gave them up', () => dying.lost.length === 2)
  proxy.cut()
  expect(await dying.consumer.acknowledge(held)).toEqual(held)
  expect(await raw.xlen(`${prefix}mail:5`)).toBe(2)
  expect(await living.consumer.acknowledge(got)).toEqual([])
})

test('a late acknowledgement does not settle what another has', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker()
  await redis.publish(numbered(1))
  const late = hand(redis, { prefetch: 1 })
  const held = await late.take(1)
  const [[id] = ['']] = await raw.xrange(`${prefix}mail:5`, '-', '+')
  await raw.xclaim(`${prefix}mail:5`, 'redrive', 'somebody-else', 0, id)
  expect(await late.consumer.acknowledge(held)).toEqual(held)
  expect(await raw.xlen(`${prefix}mail:5`)).toBe(1)
})

test('what was lost and has come again is settled by its later holder only', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker()
  await redis.publish(numbered(1))
  const { consumer, take } = hand(redis, { prefetch: 2 })
  const before = await take(1)
  const [[id] = ['']] = await raw.xrange(`${prefix}mail:5`, '-', '+')
  await raw.xclaim(`${prefix}mail:5`, 'redrive', 'parked', 0, id, 'JUSTID')
  const again = await take(1)
  expect(again[0]?.redelivered).toBe(true)
  expect(await consumer.acknowledge(before)).toEqual(before)
  expect(await raw.xlen(`${prefix}mail:5`)).toBe(1)
  expect(await consumer.acknowledge(again)).toEqual([])
  expect(await raw.xlen(`${prefix}mail:5`)).toBe(0)
})

test('what was acknowledged does not come as new when Redis comes back as it was a moment before', async () => {
  const { broker, raw, url, prefix } = await redisScene()
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const key = `${prefix}mail:5`
  const redis = broker()
  const { consumer, take } = hand(broker({ url: proxy.url }))
  await redis.publish(numbered(2))
  const held = await take(2)
  const inHand = await raw.dumpBuffer(key)
  expect(await consumer.acknowledge(held)).toEqual([])
  expect(await raw.xlen(key)).toBe(0)
  await raw.restore(key, 0, inHand, 'REPLACE')
  const pending = (await raw.xpending(key, 'redrive', '-', '+', 10)) as [string, string, number, deliveries: number][]
  expect(pending.map(([, , , deliveries]) => deliveries)).toEqual([1, 1])
  proxy.cut()
  const again = await take(2)
  expect(again.map(({ body, redelivered }) => [body, redelivered])).toEqual([
    ['0', true],
    ['1', true],
  ])
  expect(await consumer.acknowledge(again)).toEqual([])
  expect(await raw.xlen(key)).toBe(0)
})

test('a long handler keeps what it has, and is told when it lost it', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker({ claimAfterMs: 3_000 })
  await redis.publish(numbered(2))
  const slow = hand(redis, { prefetch: 2 })
  const held = await slow.take(2)
  const pending = async () =>
    (await raw.xpending(`${prefix}mail:5`, 'redrive', '-', '+', 10)) as [string, string, idleMs: number, number][]
  // Redis measures how long it was silent, and begins again and again.
  let signs = 0
  let idleMs = 0
  await until('it gave three signs of life', async () => {
    const [first] = await pending()
    if (first && first[2] < idleMs) signs += 1
    idleMs = first?.[2] ?? 0
    return signs === 3
  })
  expect((await pending()).map(([, , , deliveries]) => deliveries)).toEqual([1, 1])
  expect(slow.lost).toEqual([])
  const [[id] = ['']] = await raw.xrange(`${prefix}mail:5`, '-', '+')
  await raw.xclaim(`${prefix}mail:5`, 'redrive', 'somebody-else', 0, id)
  await until('it was told', () => slow.lost.length === 1)
  expect(slow.lost).toEqual([held[0]])
  expect(await slow.consumer.acknowledge(held)).toEqual([held[0]])
})

test('consumers that are gone are removed when they hold nothing', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker({ claimAfterMs: 200 })
  const key = `${prefix}mail:5`
  const names = async () => {
    const rows = (await raw.xinfo('CONSUMERS', key, 'redrive')) as string[][]
    return rows.map(row => row[row.indexOf('name') + 1])
  }
  await raw.xgroup('CREATE', key, 'redrive', '0', 'MKSTREAM')
  await raw.xgroup('CREATECONSUMER', key, 'redrive', 'long-gone')
  const { consumer } = hand(redis)
  await until('it is removed', async () => !(await names()).includes('long-gone'), 30_000)
  await consumer.close()
  expect((await names()).filter(name => name !== 'parked')).toEqual([])
})

test('a cut connection loses nothing and repeats nothing: the entries stay in our name', async () => {
  const { broker, url } = await redisScene()
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const redis = broker()
  const cut = hand(broker({ url: proxy.url }), { prefetch: 20 })
  const got: Delivery[] = []
  for (let round = 0; round < 6; round += 1) {
    await redis.publish(numbered(50, { body: `${round}` }))
    const batch = await cut.take(10)
    got.push(...batch)
    proxy.cut()
    expect(await cut.consumer.acknowledge(batch)).toEqual([])
  }
  const rest = 6 * 50 - got.length
  for (let left = rest; left > 0; ) {
    const batch = await cut.take(Math.min(left, 10))
    got.push(...batch)
    left -= batch.length
    expect(await cut.consumer.acknowledge(batch)).toEqual([])
  }
  expect(got.filter(({ redelivered }) => redelivered)).toEqual([])
  expect(await redis.depth('mail')).toBe(0)
  expect(cut.consumer.arrived('mail')).toBe(0)
  expect(cut.lost).toEqual([])
})

test('an acknowledgement whose answer was lost is said again and counts', async () => {
  const { broker, url } = await redisScene()
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const redis = broker()
  await redis.publish(numbered(1))
  const { consumer, take } = hand(broker({ url: proxy.url }), { prefetch: 1 })
  const held = await take(1)
  proxy.swallowAnswers(1)
  expect(await consumer.acknowledge(held)).toEqual([])
  expect(await redis.depth('mail')).toBe(0)
})

test('a Redis that was emptied is set up again, and what runs may end', async () => {
  const { broker, raw, prefix } = await redisScene()
  const redis = broker()
  await redis.publish(numbered(1))
  const { consumer, take } = hand(redis)
  const held = await take(1)
  await raw.del(...(await raw.keys(`${prefix}*`)))
  expect(await consumer.acknowledge(held)).toEqual([])
  await redis.publish(numbered(1, { body: 'after' }))
  expect(bodies(await take(1))).toEqual(['after'])
})

test('away: publishing fails within its limit and says that nothing was taken', async () => {
  const { broker, errors } = await redisScene()
  const away = broker({ url: 'redis://:secret@127.0.0.1:1', timeoutMs: 200 })
  const failed = await away.publish([aMessage()]).catch(error => error)
  expect(failed.message).toContain('ECONNREFUSED')
  expect(inspect([failed, errors], { depth: 10 })).not.toContain('secret')
  expect(failed).toMatchObject({ code: 'BROKER_UNAVAILABLE', details: { broker: 'redis', taken: 'none' } })
  await expect(away.depth('mail')).rejects.toMatchObject({ code: 'BROKER_UNAVAILABLE' })
  expect(away.connected).toBe(false)
})

test('frozen: publishing fails within its limit, and nobody knows whether it was taken', async () => {
  const { broker, url } = await redisScene()
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const redis = broker({ url: proxy.url, timeoutMs: 500 })
  await redis.publish([aMessage()])
  proxy.freeze()
  const failed = await redis.publish([aMessage()]).catch(error => error)
  expect(failed).toMatchObject({ code: 'BROKER_UNAVAILABLE', details: { taken: 'unknown' } })
  proxy.cut()
  await until('it is back', () =>
    redis.publish([aMessage()]).then(
      () => true,
      () => false,
    ),
  )
})

test('a batch is taken whole or not at all', async () => {
  const { broker, raw, prefix } = await redisScene()
  await raw.set(`${prefix}mail:5`, 'no stream')
  const failed = await broker()
    .publish(numbered(10))
    .catch(error => error)
  expect(failed).toMatchObject({ code: 'BROKER_UNAVAILABLE', details: { taken: 'none' } })
  expect(failed.message).toContain('WRONGTYPE')
})

test('enqueue waits for replicas where it was told to', async () => {
  const { broker, raw, prefix } = await redisScene()
  const failed = await broker({ replicas: 1, timeoutMs: 300 })
    .publish([aMessage()])
    .catch(error => error)
  expect(failed).toMatchObject({ code: 'BROKER_UNAVAILABLE', details: { taken: 'unknown' } })
  expect(failed.message).toContain('only 0 of 1 replicas')
  expect(await raw.xlen(`${prefix}mail:5`)).toBe(1)
})

test('a foreign producer needs a name and a body; its message has the same id each time', async () => {
  const { broker, raw, prefix } = await redisScene()
  await raw.xadd(`${prefix}mail:5`, '*', 'Redrive-Name', 'send', 'body', '{"to":"ada"}')
  const first = hand(broker(), { prefetch: 1 })
  const [delivery] = await first.take(1)
  expect(delivery?.headers).toMatchObject({ 'redrive-name': 'send' })
  expect(delivery?.headers['message-id']).toMatch(/mail:5 \d+-\d+$/)
  await first.consumer.close()
  const [again] = await hand(broker()).take(1)
  expect(again?.headers).toEqual(delivery?.headers)
})

test('an entry of any shape is delivered, bounded', async () => {
  const { broker, raw, prefix } = await redisScene()
  const key = `${prefix}mail:5`
  await raw.xadd(key, '*', 'nothing', 'of use')
  await raw.xadd(key, '*', 'body', Buffer.from([0xff, 0xfe, 0x00]))
  await raw.xadd(key, '*', ...Array.from({ length: 200 }, (_, index) => [`h${index}`, 'x'.repeat(5_000)]).flat())
  await raw.xadd(key, '*', '__proto__', 'polluted', 'body', '1', 'body', '2')
  const got = await hand(broker()).take(4)
  expect(got.map(({ body }) => body)).toEqual(['', '\ufffd\ufffd\0', '', '2'])
  expect(Object.keys(got[2]?.headers ?? {}).length).toBeLessThan(60)
  expect(got[2]?.headers.h0).toHaveLength(2_000)
})
