import type { Call } from '../route.js'

/** What holds for the jobs of a queue, and who said so. Its version, for If-Match, is that of what was set at run time. */
export async function getPolicy({ params, backend, header }: Call<{ queue: string }>) {
  const answer = await backend.operator.policies.get({ queue: params.queue })
  header('etag', `"${answer.versions.queue}"`)
  return answer
}
