import type { Call } from '../route.js'
import { without } from '../without.js'

/** Also of an id that nobody knows: what is known of it is said. */
export async function explainJob({ params, backend }: Call<{ id: string }>) {
  const { id, state, text, sentences, obstacle, next, attempts, workers } = await backend.operator.jobs.explain(
    params.id,
  )
  return { id, state, text, sentences, next, ...without({ obstacle, attempts, workers }) }
}
