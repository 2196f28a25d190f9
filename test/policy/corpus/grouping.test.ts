// Pairs of failures that are one group, and pairs that are two (grouping/). A person who looks at 40,000 dead letters
// sees as many groups as there are causes, or gives up.
import { describe, expect, it } from 'vitest'
import { normalise } from '../../../src/policy/fingerprint/normalise.js'
import { APART } from './grouping/apart.js'
import { JOIN } from './grouping/join.js'
import { type Failed, groupOf } from './grouping/pair.js'

const seen = ({ message }: Failed) => normalise(message)

describe('one group', () => {
  it.each(JOIN)('$name', ({ one, other }) => {
    expect(groupOf(one), `${seen(one)}\n${seen(other)}`).toBe(groupOf(other))
  })
})

describe('two groups', () => {
  it.each(APART)('$name', ({ one, other }) => {
    expect(groupOf(one), `${seen(one)}\n${seen(other)}`).not.toBe(groupOf(other))
  })
})

it('is a corpus', () => {
  for (const pairs of [JOIN, APART]) {
    expect(pairs.length).toBeGreaterThanOrEqual(60)
    expect(new Set(pairs.map(({ name }) => name)).size).toBe(pairs.length)
  }
})
