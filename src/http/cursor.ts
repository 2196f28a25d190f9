// Cursors as they leave: opaque, and of one list only, so that nobody builds on what is inside.
import { RedriveError } from '../domain/errors.js'

const VERSION = '1'

export const cursorOf = (list: string, place: string | undefined): string | null =>
  place === undefined ? null : Buffer.from(`${VERSION}:${list}:${place}`).toString('base64url')

/** The place that this list gave out; undefined: from the start. */
export function placeIn(list: string, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const text = Buffer.from(cursor, 'base64url').toString()
  const start = `${VERSION}:${list}:`
  if (!text.startsWith(start) || cursorOf(list, text.slice(start.length)) !== cursor) throw strange()
  return text.slice(start.length)
}

const strange = (): RedriveError =>
  new RedriveError('REQUEST_INVALID', 'The cursor is not one that this list returned', {
    details: { issues: [{ in: 'query', field: 'cursor', message: 'must be a nextCursor of this list' }] },
  })
