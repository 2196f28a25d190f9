// How much work a piece of code does on text, counted and not timed: every character that a string method looks at is
// a step. A pattern counts as one pass over its input; that this is true, linear.test.ts shows for every pattern used.

export interface Work {
  readonly steps: number
  readonly patterns: ReadonlySet<RegExp>
}

type Method = (this: unknown, ...args: unknown[]) => unknown
type Cost = (text: string, args: readonly unknown[], result: unknown) => number

const whole: Cost = text => text.length
const argument: Cost = (_, [needle]) => String(needle).length
const single: Cost = () => 1

const STRING_COSTS: Readonly<Record<string, Cost>> = {
  charAt: single,
  charCodeAt: single,
  // Up to where it was found; `from` comes second.
  indexOf: (text, [, from], found) => (Number(found) < 0 ? text.length : Number(found) + 1) - (Number(from) || 0),
  includes: (text, [, from]) => text.length - (Number(from) || 0),
  lastIndexOf: whole,
  startsWith: argument,
  endsWith: argument,
  slice: (_, __, result) => String(result).length,
  replace: whole,
  replaceAll: whole,
  matchAll: whole,
  split: whole,
  trim: whole,
  trimEnd: whole,
  toLowerCase: whole,
  toWellFormed: whole,
}

/** Runs `act` with the methods of strings and patterns counted. It must not wait for anything. */
export function workOf(act: () => unknown): Work {
  let steps = 0
  const patterns = new Set<RegExp>()
  const restore = [
    ...Object.entries(STRING_COSTS).map(([name, cost]) =>
      wrap(String.prototype, name, (text, args, result) => {
        steps += Math.max(1, cost(String(text), args, result))
      }),
    ),
    ...['exec', 'test', Symbol.replace, Symbol.matchAll, Symbol.split].map(name =>
      wrap(RegExp.prototype, name, (pattern, [text]) => {
        patterns.add(pattern as RegExp)
        // While replacing and splitting it is asked again and again, each time from where it was: one pass in all.
        const { global, sticky } = pattern as RegExp
        if (name === 'test' || (name === 'exec' && !global && !sticky)) steps += String(text).length
      }),
    ),
  ]
  try {
    act()
  } finally {
    for (const undo of restore) undo()
  }
  return { steps, patterns }
}

function wrap(
  prototype: object,
  name: string | symbol,
  count: (self: unknown, args: readonly unknown[], result: unknown) => void,
): () => void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name)
  if (typeof descriptor?.value !== 'function') throw new Error(`there is no method ${String(name)}`)
  const original = descriptor.value as Method
  let counting = false
  function counted(this: unknown, ...args: unknown[]): unknown {
    const result = original.apply(this, args)
    // Counting uses such methods too.
    if (!counting) {
      counting = true
      count(this, args, result)
      counting = false
    }
    return result
  }
  Object.defineProperty(prototype, name, { ...descriptor, value: counted })
  return () => Object.defineProperty(prototype, name, descriptor)
}
