import type { Call } from '../route.js'
import { whole } from '../whole-list.js'

/** In the order in which they are asked. */
export const listTriageRules = async ({ backend }: Call) => whole(await backend.operator.triage.list())
