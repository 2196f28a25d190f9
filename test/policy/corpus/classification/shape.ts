// One entry of the corpus: something that is really thrown, and the kind it must be given.
import type { Kind } from '../../../../src/domain/failure.js'
import type { ClassifyContext } from '../../../../src/policy/classify.js'

export interface Shape {
  readonly name: string
  readonly kind: Kind
  /** Makes the error: with the real library where there is one, else as that library does. */
  readonly thrown: () => unknown
  /** Part of what the judgement must give as its reason. */
  readonly because?: string
  readonly context?: ClassifyContext
}

export interface Family {
  readonly family: string
  readonly shapes: readonly Shape[]
}

export function shape(name: string, kind: Kind, thrown: () => unknown, because?: string): Shape {
  return { name, kind, thrown, ...(because !== undefined && { because }) }
}

/** What `act` throws or rejects with. */
export async function caught(act: () => unknown): Promise<unknown> {
  try {
    await act()
  } catch (thrown) {
    return thrown
  }
  throw new Error('nothing was thrown')
}

/** An error as a library makes it that is not installed here: name, message and fields from its source. */
export function like(name: string, message: string, fields: object = {}): Error {
  const error = Object.assign(new Error(message), fields)
  if (name !== 'Error') Object.defineProperty(error, 'name', { value: name })
  return error
}
