// A result as it goes to the ledger: what will be read again, and how much text it is.
import { expect, it } from 'vitest'
import { defineJob } from '../../src/runtime/definition.js'
import { encodeResult } from '../../src/runtime/payload.js'

it('is what JSON makes of it, with its length', () => {
  const job = defineJob({ name: 'send', queue: 'mail', handler: () => {} })
  expect(encodeResult(job, { sent: true, at: new Date(0), not: undefined })).toEqual({
    result: { sent: true, at: '1970-01-01T00:00:00.000Z' },
    size: '{"sent":true,"at":"1970-01-01T00:00:00.000Z"}'.length,
  })
})
