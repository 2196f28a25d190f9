import type { Call } from '../route.js'

export async function getGroup({ params, backend, header }: Call<{ id: string }>) {
  const group = await backend.operator.groups.get(params.id)
  header('etag', `"${group.version}"`)
  return group
}
