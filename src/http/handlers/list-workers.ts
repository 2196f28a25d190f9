import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { workerQuery } from '../schemas/desk.js'
import { without } from '../without.js'

const LIST = 'workers'

export async function listWorkers({ query, backend }: Call<unknown, z.output<typeof workerQuery>>) {
  const { limit, cursor, ended } = query
  const page = await backend.operator.workers.list(without({ limit, ended, cursor: placeIn(LIST, cursor) }))
  const exact = cursor === undefined && page.nextCursor === undefined
  return {
    items: page.items,
    nextCursor: cursorOf(LIST, page.nextCursor),
    total: { value: page.items.length, exact },
  }
}
