// Two failures that are one group, or must not be.
import { classify } from '../../../../src/policy/classify.js'
import { type FailureLike, fingerprint } from '../../../../src/policy/fingerprint.js'

export interface Failed extends FailureLike {
  readonly job?: string
}

export interface Pair {
  readonly name: string
  readonly one: Failed
  readonly other: Failed
}

export const pair = (name: string, one: Failed | string, other: Failed | string): Pair => ({
  name,
  one: failed(one),
  other: failed(other),
})

/** A message alone stands for an Error with it. */
const failed = (given: Failed | string): Failed =>
  typeof given === 'string' ? { type: 'Error', message: given } : given

export const groupOf = ({ job, ...failure }: Failed): string => fingerprint(failure, job)

/** As the worker makes it from what was thrown, without a stack: these errors come from one place, real ones do not. */
export function thrown(error: unknown): Failed {
  const { stack: _, ...failure } = classify(error)
  return failure
}

export const error = (fields: Partial<Failed>): Failed => ({ type: 'Error', message: 'it failed', ...fields })

/** A failure whose stack has these frames below its message. */
export const at = (...frames: readonly string[]): Failed =>
  error({ stack: ['Error: it failed', ...frames.map(frame => `    at ${frame}`)].join('\n') })

export const because = (...causes: readonly (string | { type?: string; code?: string; message: string })[]): Failed =>
  error({
    message: 'could not save',
    causes: causes.map(cause => ({ type: 'Error', ...(typeof cause === 'string' ? { message: cause } : cause) })),
  })
