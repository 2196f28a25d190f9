// Payloads and results arrive as they were sent, however odd (pitfall 20: one odd payload blocks nobody).
import { expect } from 'vitest'
import type { Json } from '../../../src/domain/json.js'
import { completed } from '../../support/settlements.js'
import type { Tell } from '../transport.js'

const nested = (depth: number): Json => (depth === 0 ? 'bottom' : [nested(depth - 1)])

const ODD: Readonly<Record<string, Json>> = {
  'null itself': null,
  'a bare string': 'just text',
  'a NUL': { text: 'before\u0000after' },
  'half a surrogate pair': { text: 'a\ud800b', '\udfff': 1 },
  emoji: { text: '👩‍👩‍👧‍👦 🏳️‍🌈 ①' },
  'what SQL, HTML and a shell would like': { text: `'; DROP TABLE job; -- <script>alert(1)</script> $(rm) %s \\ \`` },
  'keys a program would like': JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "": 2}') as Json,
  'keys in an order': { z: 1, a: 2, 10: 3, m: { y: 1, b: 2 } },
  'numbers at the edge': [0, -0.5, 1e308, 5e-324, Number.MAX_SAFE_INTEGER, 0.1 + 0.2],
  'deep nesting': nested(500),
  'line ends and separators': { text: '\r\n\t\u2028\u2029\u0085\ufeff' },
  '900 kB': { text: 'x'.repeat(900_000) },
}

export function payload(tell: Tell): void {
  for (const [what, value] of Object.entries(ODD)) {
    tell(`a payload arrives as it was sent: ${what}`, async ({ job, publish, worker }) => {
      const payloadText = JSON.stringify(value)
      await publish(job({ payloadText }))
      const hand = await worker()
      const claimed = await hand.take()
      expect(claimed.payloadText).toBe(payloadText)
      expect(await hand.settle(completed(claimed, value))).toEqual([])
    })
  }

  tell('all of them in one batch', async ({ job, publish, worker }) => {
    const texts = Object.values(ODD).map(value => JSON.stringify(value))
    await publish(...texts.map(payloadText => job({ payloadText })))
    const claimed = await (await worker()).fetch()
    expect(claimed.map(one => one.payloadText)).toEqual(texts)
  })

  tell('a unique key and a tenant can be any text', async ({ job, publish, worker }) => {
    const said = { uniqueKey: `k'"\\; 👍 --`, tenant: '<b>ö</b>', user: "O'Neill", project: '', service: 'ａ' }
    const first = job(said)
    await publish(first)
    expect(await publish(job(said))).toEqual([{ id: first.id, deduplicated: true }])
    expect(await (await worker()).take()).toMatchObject(said)
  })
}
