// Who provides what, in this process, now. Providers come and go while jobs run: a job asks at each attempt, and one that is
// running when its provider leaves goes on to its end.
import { bad, checkOperationName, nameOf, type ProviderName, parseProviderName } from './names.js'
import type { AnyOperation, Operation, Provider } from './provider.js'
import { checkDelayMs } from './retry-delays.js'

export type Found =
  | { readonly type: 'found'; readonly operation: Operation }
  | { readonly type: 'no provider' }
  | { readonly type: 'no operation'; readonly known: readonly string[] }

export interface RegisterOptions {
  /** Take the place of the one that has this name. Without it that is an error: two teams would not notice. */
  readonly replace?: boolean
}

export class ProviderRegistry {
  readonly #providers = new Map<string, ReadonlyMap<string, Operation>>()

  /** `ITL.Core/ResourceGroup`. Returns a function that unregisters exactly this one. */
  register(name: string, provider: Provider, { replace = false }: RegisterOptions = {}): () => boolean {
    const key = nameOf(parseProviderName(name))
    if (this.#providers.has(key) && !replace) {
      throw bad('The name of a provider', key, 'one that is not registered yet; `replace: true` takes its place')
    }
    const operations = operationsOf(key, provider)
    this.#providers.set(key, operations)
    return () => this.#providers.get(key) === operations && this.#providers.delete(key)
  }

  /** False: there was none. */
  unregister(name: string): boolean {
    return this.#providers.delete(nameOf(parseProviderName(name)))
  }

  find(name: ProviderName, operation: string): Found {
    const operations = this.#providers.get(nameOf(name))
    if (!operations) return { type: 'no provider' }
    const found = operations.get(operation)
    return found ? { type: 'found', operation: found } : { type: 'no operation', known: [...operations.keys()] }
  }

  list(): { readonly name: string; readonly operations: readonly string[] }[] {
    return [...this.#providers]
      .map(([name, operations]) => ({ name, operations: [...operations.keys()] }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}

/** Own properties only: a job that asks for `constructor` finds nothing. */
function operationsOf(key: string, provider: Provider): ReadonlyMap<string, Operation> {
  if (typeof provider !== 'object' || provider === null)
    throw bad(`Provider ${key}`, provider, 'an object of operations')
  const operations = new Map(Object.entries(provider).map(([name, given]) => [name, checked(key, name, given)]))
  if (operations.size === 0) throw bad(`Provider ${key}`, 'without operations', 'an object with at least one')
  return operations
}

function checked(key: string, name: string, given: AnyOperation): Operation {
  checkOperationName(name)
  const what = `Operation ${name} of ${key}`
  const operation: Operation = typeof given === 'function' ? { run: given } : given
  if (typeof operation?.run !== 'function') throw bad(what, given, 'a function, or an object with a function `run`')
  const { schema, retryDelayMs } = operation
  if (schema !== undefined && typeof schema['~standard']?.validate !== 'function') {
    throw bad(`The schema of ${what}`, schema, 'a Standard Schema validator')
  }
  if (retryDelayMs !== undefined) checkDelayMs(`retryDelayMs of ${what}`, retryDelayMs)
  return operation
}
