import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { groupQuery } from '../schemas/group.js'
import { without } from '../without.js'

export async function listGroups({ query, backend, cached }: Call<unknown, z.output<typeof groupQuery>>) {
  const { limit, cursor, q, sort = 'lastSeen', ...filter } = query
  const list = `groups-${sort}`
  const sought = without({ ...filter, text: q })
  const { groups } = backend.operator
  const page = await groups.list(sought, without({ limit, sort, cursor: placeIn(list, cursor) }))
  return {
    items: page.items,
    nextCursor: cursorOf(list, page.nextCursor),
    total: await cached(`groups ${JSON.stringify(sought)}`, () => groups.count(sought)),
  }
}
