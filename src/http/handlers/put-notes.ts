import type { z } from '@hono/zod-openapi'
import { notesTag } from '../notes-tag.js'
import type { Call } from '../route.js'
import type { notesBody } from '../schemas/dead-letter.js'
import { without } from '../without.js'

export async function putNotes(call: Call<{ id: string }, unknown, z.output<typeof notesBody>>) {
  const { params, body, backend, acting, seen, header } = call
  const ifStill = seen === undefined ? undefined : (now: Parameters<typeof notesTag>[0]) => notesTag(now) === seen
  const letter = await backend.operator.deadLetters.annotate(params.id, without(body), without({ ...acting, ifStill }))
  header('etag', `"${notesTag(letter)}"`)
  return letter
}
