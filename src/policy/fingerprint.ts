// Equal for failures of the same cause, different for different causes; groups of dead letters are made by it.
// Changing anything that goes into it needs a new version: stored fingerprints are never rewritten (pitfall 23).
import { hash } from 'node:crypto'
import type { Cause, Failure } from '../domain/failure.js'
import { topFrames } from './fingerprint/frames.js'
import { normalise } from './fingerprint/normalise.js'

const VERSION = 'v1'
const HEX_CHARS = 16

/** What a fingerprint is made of: a Failure, or as much of one as there is. */
export type FailureLike = Pick<Failure, 'type' | 'message'> &
  Partial<Pick<Failure, 'code' | 'httpStatus' | 'stack' | 'causes' | 'service'>>

/** `job`: the job's name, where there is one; else failures are kept apart by service. */
export function fingerprint(failure: FailureLike, job?: string): string {
  const { type, message, code, httpStatus, stack, causes = [], service } = failure
  const parts = [
    job ?? service ?? '',
    type,
    code ?? '',
    httpStatus ?? '',
    normalise(message),
    causesOf(causes),
    stack === undefined ? [] : topFrames(stack, message),
  ]
  return `${VERSION}:${hash('sha256', JSON.stringify(parts)).slice(0, HEX_CHARS)}`
}

/**
 * A wrapper's message is often always the same: what it wraps tells. Equal members of an aggregate count once, and
 * the order in which they failed is chance.
 */
const causesOf = (causes: readonly Cause[]): readonly string[] =>
  [...new Set(causes.map(({ type, code, message }) => JSON.stringify([type, code ?? '', normalise(message)])))].sort()
