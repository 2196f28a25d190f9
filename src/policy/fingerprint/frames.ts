// Where in the user's code a failure came from: the topmost frames as function and file. No line numbers, which
// move with every edit, and no folders above the last, which move with every deployment; nor the number of a release.
import { remember } from '../remember.js'
import { placeholderInName } from './tokens.js'

const FRAMES = 3
/** Far more than a stack has frames; bounds a hostile one. */
const MOST_LINES = 200
const LONGEST_LINE = 1_000

/** at [async] function (file:line:column), or at file:line:column */
const POSITION = /:\d{1,9}(?::\d{1,9})?$/
/** What a bundler adds to a name: chunk-4F9A2C.js */
const BUILD_HASH = /[-.](?=[A-Za-z0-9_]*\d)[A-Za-z0-9_]{6,32}(?=\.)/g

/** The same few places fail again and again, and in a storm thousands of times a second. */
const KNOWN = 200
const known = new Map<string, Place>()

/** Where failures came from, and the fingerprints that were made of it, by what else went into them. */
export interface Place {
  readonly frames: readonly string[]
  readonly fingerprints: Map<string, string>
}

let latest: { readonly lines: string; readonly place: Place } | undefined

export function placeOf(stack: string, message: string): Place {
  const lines = afterMessage(stack, message)
  // Mostly the one that failed just before: comparing is cheaper than hashing.
  if (latest?.lines === lines) return latest.place
  const place = known.get(lines) ?? remember(known, KNOWN, lines, { frames: framesOf(lines), fingerprints: new Map() })
  latest = { lines, place }
  return place
}

function framesOf(lines: string): readonly string[] {
  const places = lines.split('\n', MOST_LINES).flatMap(parse)
  const inApp = places.filter(({ file }) => !isForeign(file))
  const frames = (inApp.length > 0 ? inApp : places).map(({ fn, file }) => `${fn} ${shortFile(file)}`)
  // How deep a recursion went is no cause.
  return frames.filter((frame, index) => frame !== frames[index - 1]).slice(0, FRAMES)
}

/** A message can contain lines that look like frames. */
function afterMessage(stack: string, message: string): string {
  const start = message === '' ? -1 : stack.slice(0, message.length + 400).indexOf(message)
  return start < 0 ? stack : stack.slice(start + message.length)
}

interface Frame {
  readonly fn: string
  readonly file: string
}

function parse(line: string): readonly Frame[] {
  const trimmed = line.trim()
  if (!trimmed.startsWith('at ') || trimmed.length > LONGEST_LINE) return []
  const rest = trimmed.slice(3).replace(/^async /, '')
  const open = rest.endsWith(')') ? rest.lastIndexOf(' (') : -1
  const [fn, place] = open < 0 ? ['', rest] : [rest.slice(0, open), rest.slice(open + 2, -1)]
  const file = place.replace(POSITION, '')
  // `at Promise.all (index 0)` and `at <anonymous>` are no places.
  return file === place ? [] : [{ fn: shortFunction(fn), file }]
}

const isForeign = (file: string): boolean => file.startsWith('node:') || /[\\/]node_modules[\\/]/.test(file)

/** `Object.resize [as handler]` and `resize` are the same function, seen through different hands. */
const shortFunction = (fn: string): string =>
  fn.replace(/ \[as [^\]]*\]$/, '').replace(/^(?:new |Object\.|Module\.)/, '')

function shortFile(file: string): string {
  const [name = '', folder = ''] = (file.split('?', 1)[0] ?? '').split(/[\\/]/).reverse()
  return `${placeholderInName(folder)}/${name.replace(BUILD_HASH, '')}`
}
