import type { Call } from '../route.js'
import { whole } from '../whole-list.js'

export const listServices = async ({ backend }: Call) => whole(await backend.operator.services.list())
