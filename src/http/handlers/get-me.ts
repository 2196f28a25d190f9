import type { Call } from '../route.js'

export const getMe = async ({ who }: Call) => ({ name: who.name, scopes: who.scopes })
