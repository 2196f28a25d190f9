import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { auditQuery } from '../schemas/desk.js'
import { without } from '../without.js'

const LIST = 'audit'

export async function listAudit({ query, backend }: Call<unknown, z.output<typeof auditQuery>>) {
  const { limit, cursor, ...filter } = query
  const page = await backend.operator.audit.list(without(filter), without({ limit, cursor: placeIn(LIST, cursor) }))
  const exact = cursor === undefined && page.nextCursor === undefined
  return {
    items: page.items,
    nextCursor: cursorOf(LIST, page.nextCursor),
    total: { value: page.items.length, exact },
  }
}
