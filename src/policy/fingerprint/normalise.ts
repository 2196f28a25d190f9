// A message without what differs from one failure to the next of the same cause: "user 42 not found" and "user 7
// not found" are one. Linear in the length of its input, which is capped (pitfall 23): one scan for quoted values,
// one over the words, a few to fold what is left.
import { LIMITS } from '../../domain/limits.js'
import { replaceQuoted } from './quoted.js'
import { placeholder } from './tokens.js'

/** Enough to tell causes apart; what follows is mostly dumped data. */
const KEPT_CHARS = 512

/** Colours that a program writes to a terminal, and not to a pipe. Built from a number: a linter takes ESC for a slip. */
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]{0,20}m`, 'g')
/** Postgres shows the value of a key without quotes: `Key (name)=(ann) already exists`. */
const KEY_VALUE = /=\([^()]{0,256}\)/g

/** A placeholder is left as it is. */
const WORD = /<(?:url|email|date|host|path|q)>|[^\s'"`()[\]{}<>,;|]+/g
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
/** Sun, 06 Nov 1994 <date>, and Sun Nov 06 1994 <date>: what is left of a written date after its numbers went. */
const WRITTEN_DATE = new RegExp(
  `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:# ${MONTH}|${MONTH} #),? #(?:,? <date>)?(?: GMT(?:[+-]#)?| UTC)?`,
  'g',
)
/** How large or how long is no cause: 900 KB and 1.2 MB, 850 ms and 2 seconds. */
const AMOUNT = /# (?:bytes?|[KMGT]i?B|B|ms|millis|milliseconds?|s|secs?|seconds?|min|minutes?|hours?|days?)(?![\w-])/g
/** 1, 2, 3 is as good as 1: how many were concerned is no cause. */
const REPEATED = /(#|<date>|<host>|<path>|<q>|<email>|<url>)(?:,? ?\1)+/g

export const normalise = (message: string): string =>
  withoutInstances(message.slice(0, LIMITS.messageChars)).slice(0, KEPT_CHARS)

/** The same without the caps, so that a test can show on long input that the work grows no faster than it. */
export function withoutInstances(message: string): string {
  let previous = ''
  let before = ''
  const plain = message.replace(COLOUR, '').replace(KEY_VALUE, '=(<q>)')
  const words = replaceQuoted(plain).replace(WORD, word => {
    const replaced = word.startsWith('<') ? word : placeholder(word, previous, before)
    before = previous
    previous = word.endsWith(':') ? word.slice(0, -1) : word
    return replaced
  })
  return words
    .replace(/\s+/g, ' ')
    .replace(/\[<host>\](?::#)?/g, '<host>')
    .replace(WRITTEN_DATE, '<date>')
    .replace(AMOUNT, '#')
    .replace(REPEATED, '$1')
    .trim()
}
