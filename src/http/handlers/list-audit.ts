import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { auditQuery } from '../schemas/desk.js'
import { without } from '../without.js'

const LIST = 'audit'

export async function listAudit({ query, backend, cached }: Call<unknown, z.output<typeof auditQuery>>) {
  const { limit, cursor, ...filter } = query
  const { audit } = backend.operator
  const sought = without(filter)
  const page = await audit.list(sought, without({ limit, cursor: placeIn(LIST, cursor) }))
  return {
    items: page.items,
    nextCursor: cursorOf(LIST, page.nextCursor),
    total: await cached(`audit ${JSON.stringify(sought)}`, () => audit.count(sought)),
  }
}
