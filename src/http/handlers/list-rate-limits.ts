import type { z } from '@hono/zod-openapi'
import { RedriveError } from '../../domain/errors.js'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { rateLimitQuery } from '../schemas/rate-limit.js'
import { without } from '../without.js'

const LIST = 'rate-limits'
const LIMIT = 50

export async function listRateLimits({ query, backend }: Call<unknown, z.output<typeof rateLimitQuery>>) {
  const { limit = LIMIT, cursor, name } = query
  const after = afterOf(placeIn(LIST, cursor))
  const items = await backend.operator.rateLimits.list(without({ name, limit, after }))
  const last = items.length === limit ? items.at(-1) : undefined
  return {
    items,
    nextCursor: cursorOf(LIST, last && JSON.stringify([last.name, last.key])),
    // Keys come and go: they are not counted.
    total: { value: items.length, exact: cursor === undefined && last === undefined },
  }
}

function afterOf(place: string | undefined): { name: string; key: string } | undefined {
  if (place === undefined) return undefined
  try {
    const [name, key] = JSON.parse(place) as unknown[]
    if (typeof name === 'string' && typeof key === 'string' && !place.includes('\\u0000')) return { name, key }
  } catch {}
  throw new RedriveError('REQUEST_INVALID', 'The cursor is not one that this list returned', {
    details: { issues: [{ in: 'query', field: 'cursor', message: 'must be a nextCursor of this list' }] },
  })
}
