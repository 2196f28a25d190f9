// What the message says, for errors that carry nothing better: a status, a code, or words.
import type { Source } from './evidence.js'
import { statusKind } from './http.js'
import { nodeCodeIn } from './node.js'
import { phraseIn } from './phrases.js'
import { STATUS_PHRASES } from './status-phrases.js'
import { isWeak } from './weak.js'

/** `status code 503`, `HTTP/1.1 503`, `HTTP Error 503`, `status of 503`, `server response: 503`. */
const STATUS =
  /\b(?:status(?: code| of)?|http(?:\/\d(?:\.\d)?)?(?: error)?|response(?: code| status)?)[ :=]{1,3}([3-5]\d\d)\b/i
/** `503 Service Unavailable`: a number counts where its own phrase follows it. */
const PHRASED = /\b([45]\d\d) ([A-Z][A-Za-z' -]{2,40})/g

export const text: Source = facts => {
  if (isWeak(facts)) return undefined
  const { message } = facts
  const status = STATUS.exec(message)?.[1] ?? phrasedStatus(message)
  const statusSays = status === undefined ? undefined : statusKind(Number(status))
  if (statusSays) return { kind: statusSays, because: `the text says HTTP status ${status}` }
  const coded = nodeCodeIn(message)
  if (coded) return { kind: coded.kind, because: `the text says ${coded.code}` }
  const said = phraseIn(message)
  return said && { kind: said.kind, because: `the text says "${said.phrase}"` }
}

function phrasedStatus(message: string): string | undefined {
  for (const [, status = '', words = ''] of message.matchAll(PHRASED)) {
    const phrase = STATUS_PHRASES.get(status)
    if (phrase !== undefined && words.startsWith(phrase)) return status
  }
  return undefined
}
