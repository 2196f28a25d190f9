// A program that loads the package twice (a bundle and a dependency, TypeScript beside what was built) has two classes of
// the same error: each copy knows the other's.
import { expect, it, vi } from 'vitest'
import { isRedriveError, RedriveError } from '../../src/domain/errors.js'

it('an error of another copy of this package is one of ours', async () => {
  vi.resetModules()
  const other = await import('../../src/domain/errors.js')
  expect(other.RedriveError).not.toBe(RedriveError)
  const theirs = new other.RedriveError('NOT_FOUND', 'nothing there')
  expect(isRedriveError(theirs, 'NOT_FOUND')).toBe(true)
  expect(isRedriveError(theirs, 'INTERNAL')).toBe(false)
  expect(isRedriveError(Object.assign(new Error('no'), { name: 'RedriveError', code: 'NOT_FOUND' }))).toBe(false)
  expect(isRedriveError(undefined)).toBe(false)
})
