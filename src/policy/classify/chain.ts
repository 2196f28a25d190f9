// An error and what caused it, as a small tree: `cause` goes down, an AggregateError's members go beside each
// other. Cycles are cut and the whole is bounded, whatever was thrown.
import { LIMITS } from '../../domain/limits.js'
import { isObject, items, prop } from '../read.js'
import { type Facts, factsOf } from './facts.js'

export interface Link {
  readonly facts: Facts
  readonly cause?: Link
  readonly members: readonly Link[]
}

const NONE: readonly Link[] = []

export function chainOf(error: unknown): Link {
  const seen = new Set<unknown>()
  let left: number = LIMITS.causes

  function link(error: unknown): Link {
    seen.add(error)
    const facts = factsOf(error)
    if (facts.plain) return { facts, members: NONE }
    const cause = follow(causeOf(error))
    const found = membersOf(error, facts)
    const members = found.length > 0 ? found.flatMap(member => follow(member) ?? []) : NONE
    return cause ? { facts, members, cause } : { facts, members }
  }

  function follow(next: unknown): Link | undefined {
    if (next === undefined || next === null || left === 0 || (isObject(next) && seen.has(next))) return undefined
    left--
    return link(next)
  }

  return link(error)
}

/** Where libraries without `cause` keep it: Sequelize, TypeORM, GraphQL, node-redis, SuppressedError, settled promises. */
const OTHER_NAMES = ['original', 'originalError', 'driverError', 'innerError', 'error', 'reason']

function causeOf(error: unknown): unknown {
  const cause = prop(error, 'cause')
  if (cause !== undefined && cause !== null) return cause
  for (const name of OTHER_NAMES) {
    const inner = prop(error, name)
    if (!isObject(inner)) continue
    // An object that is no error may be an answer's body: what it calls its error is one, whatever its shape.
    if (isErrorLike(inner) || (isPlain(inner) && isObject(error) && !isErrorLike(error))) return inner
  }
  return undefined
}

const isErrorLike = (value: unknown): boolean => typeof prop(value, 'stack') === 'string'
const isPlain = (value: unknown): boolean => isObject(value) && typeof value !== 'function'

const NOTHING: readonly unknown[] = []

/** Other libraries keep plain data in `errors` too: beside a real AggregateError, only errors count. */
function membersOf(error: unknown, facts: Facts): readonly unknown[] {
  const members = items(error, LIMITS.causes) ?? items(prop(error, 'errors'), LIMITS.causes)
  if (members === undefined) return NOTHING
  if (facts.type === 'AggregateError') return members
  return members.filter(isErrorLike)
}

/** Every error of the tree, outermost first. */
export function flatten(link: Link): readonly Facts[] {
  if (!link.cause && link.members.length === 0) return [link.facts]
  return [link.facts, ...(link.cause ? flatten(link.cause) : []), ...link.members.flatMap(flatten)]
}
