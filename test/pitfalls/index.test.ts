// Every pitfall that this part of Redrive must avoid, and every invariant, has a test that carries its number.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('../', import.meta.url)
const sources = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.ts') && !path.endsWith('pitfalls/index.test.ts'))
  .map(path => readFileSync(new URL(path, ROOT), 'utf8'))

/** The numbers in titles like "pitfall 7: …", of a test or of a whole file, in its first line. */
const numbered = (word: string): Set<number> => {
  const title = new RegExp(`(?:['"\`]|^// )(${word}s? [^:'"\`\\n]*):`, 'gi')
  const titles = sources.flatMap(text => [...text.matchAll(title)].map(([, found = '']) => found))
  return new Set(titles.flatMap(found => found.match(/\d+/g) ?? []).map(Number))
}

const missing = (word: string, wanted: readonly number[]) => {
  const found = numbered(word)
  return wanted.filter(number => !found.has(number))
}

describe('the tests name', () => {
  it('every pitfall of this part', () => {
    expect(
      missing('pitfall', [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 23, 24, 25, 27]),
    ).toEqual([])
  })

  it('every invariant', () => {
    expect(missing('invariant', [1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual([])
  })
})
