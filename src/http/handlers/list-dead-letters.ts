import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { deadLetterQuery } from '../schemas/dead-letter.js'
import { without } from '../without.js'

const LIST = 'dead-letters'

export async function listDeadLetters({ query, backend, cached }: Call<unknown, z.output<typeof deadLetterQuery>>) {
  const { limit, cursor, offset, q, ...rest } = query
  const filter = without({ ...rest, text: q })
  const { items, nextCursor, total } = await backend.operator.deadLetters.list(filter, {
    ...without({ limit, offset, cursor: placeIn(LIST, cursor) }),
    counting: count => cached(`${LIST} ${JSON.stringify(filter)}`, count),
  })
  return {
    items: items.map(({ payload: _, stack: __, causes: ___, ...brief }) => brief),
    nextCursor: cursorOf(LIST, nextCursor),
    total,
  }
}
