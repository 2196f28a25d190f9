import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { deadLetterQuery } from '../schemas/dead-letter.js'
import { without } from '../without.js'

const LIST = 'dead-letters'

export async function listDeadLetters({ query, backend }: Call<unknown, z.output<typeof deadLetterQuery>>) {
  const { limit, cursor, offset, group, q, ...filter } = query
  const { items, nextCursor, total } = await backend.operator.deadLetters.list(
    without({ ...filter, fingerprint: group, text: q }),
    without({ limit, offset, cursor: placeIn(LIST, cursor) }),
  )
  return {
    items: items.map(({ payload: _, stack: __, causes: ___, ...brief }) => brief),
    nextCursor: cursorOf(LIST, nextCursor),
    total,
  }
}
