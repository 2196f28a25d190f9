// Equal for failures of the same cause, different for different causes; groups of dead letters are made by it.
// Changing anything that goes into it needs a new version: stored fingerprints are never rewritten (pitfall 23).
import { hash } from 'node:crypto'
import type { Cause, Failure } from '../domain/failure.js'
import { type Place, placeOf } from './fingerprint/frames.js'
import { normalise } from './fingerprint/normalise.js'
import { withoutNumbers } from './fingerprint/numbers.js'
import { remember } from './remember.js'

const VERSION = 'v1'
const HEX_CHARS = 16

/** What a fingerprint is made of: a Failure, or as much of one as there is. */
export type FailureLike = Pick<Failure, 'type' | 'message'> &
  Partial<Pick<Failure, 'code' | 'httpStatus' | 'stack' | 'causes' | 'service'>>

/** Causes of one place that are remembered: few places have more. */
const KNOWN = 20

/** `job`: the job's name, where there is one; else failures are kept apart by service. */
export function fingerprint(failure: FailureLike, job?: string): string {
  const { type, message, code, httpStatus, stack, causes = [], service } = failure
  const whose = job ?? service ?? ''
  const place = stack === undefined ? NOWHERE : placeOf(stack, message)
  const alike = causes.length > 0 ? undefined : withoutNumbers(message)
  if (alike === undefined) return made(failure, whose, place)
  const key = `${whose}\0${type}\0${code ?? ''}\0${httpStatus ?? ''}\0${alike}`
  return place.fingerprints.get(key) ?? remember(place.fingerprints, KNOWN, key, made(failure, whose, place))
}

const NOWHERE: Place = { frames: [], fingerprints: new Map() }

function made({ type, message, code, httpStatus, causes = [] }: FailureLike, whose: string, { frames }: Place): string {
  const parts = [whose, type, code ?? '', httpStatus ?? '', normalise(message), causesOf(causes), frames]
  return `${VERSION}:${hash('sha256', JSON.stringify(parts)).slice(0, HEX_CHARS)}`
}

/**
 * A wrapper's message is often always the same: what it wraps tells. Equal members of an aggregate count once, and
 * the order in which they failed is chance.
 */
const causesOf = (causes: readonly Cause[]): readonly string[] =>
  [...new Set(causes.map(({ type, code, message }) => JSON.stringify([type, code ?? '', normalise(message)])))].sort()
