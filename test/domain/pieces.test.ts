import fc from 'fast-check'
import { expect, it } from 'vitest'
import { inPieces } from '../../src/domain/pieces.js'

const length = (text: string) => text.length

it('begins a new piece when one is long enough', () => {
  expect(inPieces(['aaa', 'b', 'cc', 'ddddd', 'e'], length, 4)).toEqual([['aaa', 'b'], ['cc', 'ddddd'], ['e']])
  expect(inPieces([], length, 4)).toEqual([])
})

it('leaves nothing out, and no piece is longer than allowed without its last item', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.integer({ min: 1, max: 20 }), (texts, most) => {
      const pieces = inPieces(texts, length, most)
      expect(pieces.flat()).toEqual(texts)
      for (const piece of pieces) {
        expect(piece.length).toBeGreaterThan(0)
        expect(piece.slice(0, -1).join('').length).toBeLessThan(most)
      }
    }),
  )
})
