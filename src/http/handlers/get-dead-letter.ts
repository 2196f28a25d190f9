import { notesTag } from '../notes-tag.js'
import type { Call } from '../route.js'

/** Its ETag is that of its notes, for If-Match when they are changed. */
export async function getDeadLetter({ params, backend, header }: Call<{ id: string }>) {
  const letter = await backend.operator.deadLetters.get(params.id)
  header('etag', `"${notesTag(letter)}"`)
  return letter
}
