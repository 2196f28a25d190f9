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

export function chainOf(error: unknown): Link {
  const seen = new Set<unknown>()
  let left: number = LIMITS.causes

  function link(error: unknown): Link {
    seen.add(error)
    const facts = factsOf(error)
    const cause = follow(prop(error, 'cause'))
    const members = membersOf(error, facts).flatMap(member => follow(member) ?? [])
    return { facts, members, ...(cause && { cause }) }
  }

  function follow(next: unknown): Link | undefined {
    if (next === undefined || next === null || left === 0 || (isObject(next) && seen.has(next))) return undefined
    left--
    return link(next)
  }

  return link(error)
}

/** Other libraries keep plain data in `errors` too: beside a real AggregateError, only errors count. */
function membersOf(error: unknown, facts: Facts): readonly unknown[] {
  const members = items(prop(error, 'errors'), LIMITS.causes) ?? []
  if (facts.type === 'AggregateError') return members
  return members.filter(member => typeof prop(member, 'stack') === 'string')
}

/** Every error of the tree, outermost first. */
export function flatten(link: Link): readonly Facts[] {
  return [link.facts, ...(link.cause ? flatten(link.cause) : []), ...link.members.flatMap(flatten)]
}
