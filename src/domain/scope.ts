// What a token may do.

/** `payload`: see payloads, messages and stacks as they are, not redacted. It goes with one of the others. */
export const SCOPES = ['read', 'payload', 'operate', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

export const isScope = (value: unknown): value is Scope => SCOPES.includes(value as Scope)

/** Whoever may administer may operate, and whoever may operate may read. Seeing payloads is never given along. */
const GIVES: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ['read'],
  payload: ['payload'],
  operate: ['operate', 'read'],
  admin: ['admin', 'operate', 'read'],
}

export const allows = (given: readonly Scope[], needed: Scope): boolean =>
  given.some(scope => GIVES[scope].includes(needed))
