// The messages of one cause mostly differ in a number or an id that stands by itself: "order 1001 was refused", "order 1002
// was refused". Normalised they are one text whichever it is, so they can share what was worked out for the first of them.

/** A longer one is rare, would fill the memory, and where it is cut may depend on how long its numbers are. */
const LONGEST = 256

/** Begins a colour of a terminal, which `normalise` takes out: the word before a number may then be another. */
const COLOUR = String.fromCharCode(27)

/**
 * A number, an address or a UUID. One space after a word, so that the word that `normalise` would ask about it is the one
 * right before it.
 */
const ALONE =
  /(?<=^|[^\s'"`()[\]{}<>,;|] )(?:\d{1,30}|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?=[ ,]|\.?$)/g

/** After these it may say what happened, or be read as something else (tokens.ts). Words that end in one are as good. */
const TELLING =
  /(?:status|code|http|error|errno|signal|sqlstate|exit|responded|answered|replied|returned|response|with|enotfound|eai_again|econnrefused|etimedout|ehostunreach):? $/i
const TELLING_CHARS = 14

const ADDRESS = '1.1.1.1'
const UUID = 'a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1'

/**
 * Equal for messages that are normalised to the same text because only what stands by itself differs.
 * Undefined where that is not told.
 */
export function withoutNumbers(message: string): string | undefined {
  if (message.length > LONGEST || message.includes(COLOUR)) return undefined
  return message.replace(ALONE, (found: string, at: number) => {
    if (found.includes('.')) return ADDRESS
    if (TELLING.test(message.slice(Math.max(0, at - TELLING_CHARS), at))) return found
    return found.includes('-') ? UUID : '1'
  })
}
