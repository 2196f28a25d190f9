// A message without what differs from one failure to the next of the same cause: "user 42 not found" and "user 7
// not found" are one. Linear in the length of its input, which is capped (pitfall 23): one scan for quoted values,
// one over the words, one to fold repetitions.
import { LIMITS } from '../../domain/limits.js'
import { placeholder } from './tokens.js'

/** Enough to tell causes apart; what follows is mostly dumped data. */
const KEPT_CHARS = 512

const QUOTES = '\'"`'
/** Before a quote, these say that a name of the program follows, not data: `column "email" does not exist`. */
const NAMING = new Set(
  `column relation table function constraint type schema index field property parameter argument module package
   reading setting header operator extension operation provider queue job method option export import`.split(/\s+/),
)
const NAME = /^[\w.$/-]{1,64}$/

/** A placeholder is left as it is. */
const WORD = /<(?:url|email|date|host|path|q)>|[^\s'"`()[\]{}<>,;|]+/g
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
/** Sun, 06 Nov 1994 <date>, and Sun Nov 06 1994 <date>: what is left of a written date after its numbers went. */
const WRITTEN_DATE = new RegExp(
  `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:# ${MONTH}|${MONTH} #),? #(?:,? <date>)?(?: GMT(?:[+-]#)?| UTC)?`,
  'g',
)
/** 1, 2, 3 is as good as 1: how many were concerned is no cause. */
const REPEATED = /(#|<date>|<host>|<path>|<q>|<email>|<url>)(?:,? ?\1)+/g

export const normalise = (message: string): string =>
  withoutInstances(message.slice(0, LIMITS.messageChars)).slice(0, KEPT_CHARS)

/** The same without the caps, so that a test can show on long input that the work grows no faster than it. */
export function withoutInstances(message: string): string {
  let previous = ''
  const words = replaceQuoted(message).replace(WORD, word => {
    const replaced = word.startsWith('<') ? word : placeholder(word, previous)
    previous = word.endsWith(':') ? word.slice(0, -1) : word
    return replaced
  })
  return words
    .replace(/\s+/g, ' ')
    .replace(/\[<host>\](?::#)?/g, '<host>')
    .replace(WRITTEN_DATE, '<date>')
    .replace(REPEATED, '$1')
    .trim()
}

/**
 * Quoted values become <q>. A quote opens at the start of a word and closes at the end of one, so that `can't` is
 * no quote. A search for a closing quote that fails once would fail from every later place too: it is not
 * repeated, which keeps the scan linear.
 */
function replaceQuoted(text: string): string {
  const unclosed = new Set<string>()
  let result = ''
  let copied = 0
  for (let at = 0; at < text.length; at++) {
    const quote = text.charAt(at)
    if (!QUOTES.includes(quote) || isWordChar(text, at - 1) || unclosed.has(quote)) continue
    const end = closing(text, quote, at + 1)
    if (end < 0) {
      unclosed.add(quote)
      continue
    }
    const before = text.slice(copied, at)
    const inside = text.slice(at + 1, end)
    result += before + (NAMING.has(lastWord(text, at)) && NAME.test(inside) ? `${quote}${inside}${quote}` : '<q>')
    copied = end + 1
    at = end
  }
  return result + text.slice(copied)
}

function closing(text: string, quote: string, from: number): number {
  for (let at = text.indexOf(quote, from); at >= 0; at = text.indexOf(quote, at + 1)) {
    if (!isWordChar(text, at + 1)) return at
  }
  return -1
}

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
