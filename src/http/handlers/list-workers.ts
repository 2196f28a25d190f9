import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { workerQuery } from '../schemas/desk.js'
import { without } from '../without.js'

const LIST = 'workers'

export async function listWorkers({ query, backend, cached }: Call<unknown, z.output<typeof workerQuery>>) {
  const { limit, cursor, ended } = query
  const { workers } = backend.operator
  const page = await workers.list(without({ limit, ended, cursor: placeIn(LIST, cursor) }))
  return {
    items: page.items,
    nextCursor: cursorOf(LIST, page.nextCursor),
    total: await cached(`workers ${ended}`, () => workers.count(without({ ended }))),
  }
}
