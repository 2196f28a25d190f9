// The page of errors lists exactly the codes that there are: none is missing, none is invented, each says what to do.
import { describe, expect, it } from 'vitest'
import { ERROR_CODES } from '../../src/domain/errors.js'
import { readPage } from './pages.js'

const rows = [...readPage('docs/reference/errors.md').text.matchAll(/^\| `([A-Z_]+)` \| (.*) \| (.*) \|$/gm)]
const listed = rows.map(([, code = '']) => code)

describe('errors.md', () => {
  it('lists every code there is, once', () => {
    expect([...listed].sort()).toEqual(Object.keys(ERROR_CODES).sort())
  })

  it('says of each what it means and what to do', () => {
    for (const [, code, meaning = '', advice = ''] of rows) {
      expect(meaning, code).toMatch(/\w.*\.$/)
      expect(advice, code).toMatch(/\w.*\.$/)
    }
  })
})

describe('the registry', () => {
  it('says of each code, in full sentences, what happened', () => {
    for (const [code, meaning] of Object.entries(ERROR_CODES)) {
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/)
      expect(meaning, code).toMatch(/^[A-Z].*\.$/)
    }
  })
})
