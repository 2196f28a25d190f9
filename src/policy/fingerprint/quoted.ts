// Quoted values become <q>, unless what is quoted is a name of the program: `column "email" does not exist` is not
// `column "name" does not exist`, while `user "ann"` is as good as `user "bob"`.
import { placeholderInName } from './tokens.js'

/** Each opening quote with the one that closes it. */
const CLOSING: Readonly<Record<string, string>> = { "'": "'", '"': '"', '`': '`', '“': '”', '‘': '’', '«': '»' }

/** Before a quote, these say that a name follows. */
const NAMING = new Set(
  `column relation table function constraint type schema index field property parameter argument module package
   reading setting header operator extension operation provider queue job method option export import database role
   sequence trigger view procedure variable attribute topic exchange command encoder decoder codec filter format scope
   permission algorithm feature plugin template workflow action handler`.split(/\s+/),
)
/** After a quote, these say that a name went before. */
const NAMED = [' is required', ' is not allowed', ' is not defined', ' must be ', ' must have ']
const NAME = /^[\w.$@/-]{1,64}$/

/** Keys of JSON, as Zod and others print their findings, whose values are names too. */
const NAMING_KEYS = new Set(['code', 'path', 'expected', 'keyword'])

/**
 * A quote opens at the start of a word and closes at the end of one, so that `can't` is no quote. A search for a
 * closing quote that fails once would fail from every later place too: it is not repeated, which keeps the scan
 * linear.
 */
export function replaceQuoted(text: string): string {
  const unclosed = new Set<string>()
  let key = ''
  let result = ''
  let copied = 0
  for (let at = 0; at < text.length; at++) {
    const quote = text.charAt(at)
    const close = Object.hasOwn(CLOSING, quote) ? CLOSING[quote] : undefined
    if (close === undefined || unclosed.has(quote) || isWordChar(text, at - 1)) continue
    const end = closing(text, close, at + 1)
    if (end < 0) {
      unclosed.add(quote)
      continue
    }
    const inside = text.slice(at + 1, end)
    const isKey = quote === '"' && isJsonKey(text, end + 1)
    if (isKey) key = inside
    const kept = NAME.test(inside) && (isKey || NAMING_KEYS.has(key) || isNamed(text, at, end))
    result += text.slice(copied, at) + (kept ? `${quote}${placeholderInName(inside)}${close}` : '<q>')
    copied = end + 1
    at = end
  }
  return result + text.slice(copied)
}

function closing(text: string, quote: string, from: number): number {
  for (let at = text.indexOf(quote, from); at >= 0; at = text.indexOf(quote, at + 1)) {
    // An escaped quote is part of the value, as in JSON.
    if (!isWordChar(text, at + 1) && text.charAt(at - 1) !== '\\') return at
  }
  return -1
}

const isJsonKey = (text: string, after: number): boolean =>
  text.charAt(after) === ':' && /[\s\d"'[{tfn-]/.test(text.charAt(after + 1))

const isNamed = (text: string, at: number, end: number): boolean =>
  NAMING.has(lastWord(text, at)) || NAMED.some(words => text.startsWith(words, end + 1))

/** The word before `at`; no naming word is longer than this looks back. */
function lastWord(text: string, at: number): string {
  const words = text
    .slice(Math.max(0, at - 16), at)
    .trimEnd()
    .toLowerCase()
    .split(/[^a-z]/)
  return words.at(-1) ?? ''
}

const isWordChar = (text: string, at: number): boolean => /\w/.test(text.charAt(at))
