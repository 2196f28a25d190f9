// Pass or fail: the best peer is the one that counts, and what was not measured is neither.
import { expect, test } from 'vitest'
import { atLeast, atMost, best } from '../../bench/harness/verdict.mjs'

const figures: Record<string, number> = { slow: 10, fast: 40 }
const medians = (key: string) => figures[key]
const setups = ['slow', 'fast', 'absent'].map(key => ({ key, label: key }))

test('the best of some is found in both directions', () => {
  expect(best(medians, setups, 'any', 'most')).toEqual({ label: 'fast', value: 40 })
  expect(best(medians, setups, 'any', 'least')).toEqual({ label: 'slow', value: 10 })
})

test('a ratio passes at the target and fails just beside it', () => {
  const peer = { label: 'peer', value: 40 }
  expect(atLeast('≥ 2 ×', 80, peer, 2)).toMatchObject({ ratio: 2, passed: true })
  expect(atLeast('≥ 2 ×', 79, peer, 2).passed).toBe(false)
  expect(atMost('≤ 0.5 ×', 20, peer, 0.5).passed).toBe(true)
  expect(atMost('≤ 0.5 ×', 21, peer, 0.5).passed).toBe(false)
})

test('what bare statements reach is said beside it, and decides nothing', () => {
  const peer = { label: 'peer', value: 40 }
  expect(atLeast('≥ 2 ×', 60, peer, 2, 100)).toMatchObject({ ratio: 1.5, bare: 2.5, passed: false })
  expect(atMost('≤ 0.5 ×', 20, peer, 0.5, 30)).toMatchObject({ ratio: 0.5, bare: 0.75, passed: true })
  expect(atLeast('≥ 2 ×', 60, peer, 2)).not.toHaveProperty('bare')
})

test('without figures on both sides there is no verdict', () => {
  expect(atLeast('≥ 2 ×', undefined, { label: 'peer', value: 40 }, 2).passed).toBeUndefined()
  expect(atLeast('≥ 2 ×', 80, undefined, 2).passed).toBeUndefined()
})
