import type { Call } from '../route.js'
import { whole } from '../whole-list.js'

/** Those that were made; what is configured is known to whoever configured it. */
export const listTokens = async ({ backend }: Call) => whole(await backend.operator.tokens.list())
