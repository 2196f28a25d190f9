// Our list of status phrases is Node's.
import { STATUS_CODES } from 'node:http'
import { expect, it } from 'vitest'
import { STATUS_PHRASES } from '../../../src/policy/classify/status-phrases.js'

it('has the phrase of every status of 4xx and 5xx', () => {
  const failures = Object.entries(STATUS_CODES).filter(([status]) => Number(status) >= 400)
  expect([...STATUS_PHRASES]).toEqual(failures)
})
