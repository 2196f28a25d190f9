import { versionIn } from '../check-request.js'
import type { Call } from '../route.js'
import { whole } from '../whole-list.js'
import { without } from '../without.js'

/** Answers with the rules that are left. */
export async function deleteTriageRule({ params, backend, acting, seen }: Call<{ name: string }>) {
  const { triage } = backend.operator
  await triage.remove(params.name, without({ ...acting, version: versionIn(seen) }))
  return whole(await triage.list())
}
