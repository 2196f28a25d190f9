// What words in a message tell. Whole words, in any case, first row that fits.
//
// The kinds that heal come first: where a message says both, a wrong retry costs a few attempts, a wrong burial
// costs a person's time. A row that stands above its kind is there because it contains a phrase of a later one.
import type { Kind } from '../../domain/failure.js'

const row = (kind: Kind, phrases: string): readonly [Kind, readonly string[]] => [
  kind,
  phrases.split('|').map(phrase => phrase.trim()),
]

const RATE_LIMITED = row(
  'rate_limited',
  `rate limit | rate limited | rate-limit | rate-limited | ratelimit | rate exceeded | too many requests
  | quota exceeded | exceeded your quota | exceeded your current quota | exceeded quota | throttled | throttling
  | slow down | request limit | api limit | daily limit | usage limit | resource has been exhausted
  | too many messages`,
)

const PHRASES: readonly (readonly [Kind, readonly string[]])[] = [
  row('system', 'disk quota'),
  RATE_LIMITED,
  row(
    'network',
    `connection refused | connection reset | connection closed | connection is closed | connection was closed
    | connection lost | lost connection | connection aborted | connection terminated | connection termination
    | connection timeout | connection timed out | connection error | connection failed | closed the connection
    | unable to connect | could not connect | cannot connect | failed to connect | can't reach | not connected
    | broken pipe | socket hang up | socket closed | socket disconnected | other side closed | premature close
    | stream isn't writeable | network error | network is unreachable | host unreachable | are unreachable
    | is unreachable | no route to host | host not found | could not resolve | name or service not known
    | name resolution | dns | getaddrinfo | unexpected end of file | tls handshake | gone away | heartbeat timeout`,
  ),
  row(
    'system',
    `no space left | disk full | disk is full | out of memory | heap limit | cannot allocate memory
    | too many open files | too many connections | too many clients | resource exhausted | insufficient resources`,
  ),
  row(
    'transient',
    `timeout | timed out | time-out | deadline exceeded | took too long | not available | unavailable | temporarily
    | temporary failure | try again | try later | retry later | busy | overloaded | over capacity | at capacity
    | locked | deadlock | lock wait | bad gateway | internal server error | not ready | starting up | shutting down
    | in maintenance | recovery mode | no provider found | conflicting operation | write conflict
    | could not serialize | aborted | invalid response | no healthy upstream | circuit breaker | breaker is open
    | nacked`,
  ),
  row(
    'authentication',
    `forbidden | unauthorized | unauthorised | not authorized | not authorised | unauthenticated | access denied
    | permission denied | authentication failed | authentication required | login failed | invalid login
    | invalid token | token expired | expired token | token has expired | expired or revoked | invalid api key
    | incorrect api key | jwt expired | jwt malformed | invalid credentials | bad credentials | invalid password
    | username or password | invalid signature | not permitted | certificate has expired | self-signed certificate
    | self signed certificate | invalid_grant | invalid_client | sasl`,
  ),
  row(
    'validation',
    `missing required | required field | is required | must be | must not be | must have | was not provided
    | validation | invalid | malformed | bad request | schema | out of range | too large | too long | cannot parse`,
  ),
  row(
    'permanent',
    `unsupported | not supported | does not support | not implemented | unknown operation | unknown scheme | bad port
    | redirect count exceeded | unexpected redirect | too many redirects | maximum redirect | maxcontentlength
    | maxbodylength | no such | not found | does not exist | doesn't exist | already exists | duplicate
    | constraint failed | violates | corrupt | corrupted | deleted | gone`,
  ),
]

export interface Said {
  readonly kind: Kind
  readonly phrase: string
}

/** By how a phrase begins, with its place in the order above: a text is gone through once, and not once for each phrase. */
const BY_START = new Map<number, readonly (Said & { readonly place: number })[]>()

const startAt = (text: string, at: number): number => text.charCodeAt(at) * 65_536 + text.charCodeAt(at + 1)

for (const [place, said] of PHRASES.flatMap(([kind, all]) => all.map(phrase => ({ kind, phrase }))).entries()) {
  const start = startAt(said.phrase, 0)
  BY_START.set(start, [...(BY_START.get(start) ?? []), { ...said, place }])
}

export function phraseIn(message: string): Said | undefined {
  const lower = message.toLowerCase()
  let first: (Said & { readonly place: number }) | undefined
  for (let at = 0; at < lower.length; at++) {
    for (const known of BY_START.get(startAt(lower, at)) ?? []) {
      if (first && first.place <= known.place) break
      if (standsAt(lower, known.phrase, at)) first = known
    }
  }
  return first && { kind: first.kind, phrase: first.phrase }
}

export function saysRateLimited(message: string): boolean {
  const lower = message.toLowerCase()
  return RATE_LIMITED[1].some(phrase => says(lower, phrase))
}

function says(lower: string, phrase: string): boolean {
  for (let at = lower.indexOf(phrase); at >= 0; at = lower.indexOf(phrase, at + 1)) {
    if (standsAt(lower, phrase, at)) return true
  }
  return false
}

/** Whole words only: "busybox" is not busy. */
const standsAt = (lower: string, phrase: string, at: number): boolean =>
  lower.startsWith(phrase, at) && !isWord(lower[at - 1]) && !isWord(lower[at + phrase.length])

const isWord = (char: string | undefined): boolean => char !== undefined && /[a-z0-9_]/.test(char)
