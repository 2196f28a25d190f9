// Standard (TC39) method decorators compile under Vitest: `@retryable(…)` on a method relies on it.
import { expect, test } from 'vitest'

type Method<This, Args extends unknown[], Result> = (this: This, ...args: Args) => Result

function named(prefix: string) {
  return <This, Args extends unknown[]>(
    method: Method<This, Args, string>,
    context: ClassMethodDecoratorContext<This, Method<This, Args, string>>,
  ): Method<This, Args, string> =>
    function (this: This, ...args) {
      return `${prefix} ${String(context.name)}: ${method.call(this, ...args)}`
    }
}

class Mailer {
  readonly #from = 'billing'

  @named('called')
  send(to: string): string {
    return `${this.#from} → ${to}`
  }
}

test('a decorator wraps its method and is told its name', () => {
  expect(new Mailer().send('ada')).toBe('called send: billing → ada')
})
