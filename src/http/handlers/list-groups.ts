import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { groupQuery } from '../schemas/group.js'
import { without } from '../without.js'

export async function listGroups({ query, backend }: Call<unknown, z.output<typeof groupQuery>>) {
  const { limit, cursor, q, sort = 'lastSeen', ...filter } = query
  const list = `groups-${sort}`
  const page = await backend.operator.groups.list(
    without({ ...filter, text: q }),
    without({ limit, sort, cursor: placeIn(list, cursor) }),
  )
  const exact = cursor === undefined && page.nextCursor === undefined
  return {
    items: page.items,
    nextCursor: cursorOf(list, page.nextCursor),
    // Groups are not counted: there are as many as were seen, or more.
    total: { value: page.items.length, exact },
  }
}
