// What the message says, for errors that carry nothing better. Whole words, in any case, first row that fits.
//
// The kinds that heal come first: where a message says both, a wrong retry costs a few attempts, a wrong burial
// costs a person's time.
import type { Kind } from '../../domain/failure.js'
import type { Source } from './evidence.js'
import { statusKind } from './http.js'
import { nodeCodeKind } from './node.js'

const PHRASES: readonly (readonly [Kind, readonly string[]])[] = [
  ['rate_limited', ['rate limit', 'rate limited', 'rate-limited', 'ratelimit', 'rate exceeded', 'too many requests']],
  ['rate_limited', ['quota exceeded', 'exceeded your quota', 'exceeded quota', 'throttled', 'throttling', 'slow down']],
  ['network', ['connection refused', 'connection reset', 'connection closed', 'connection lost', 'connection aborted']],
  ['network', ['connection terminated', 'connection timeout', 'connection timed out', 'broken pipe', 'socket hang up']],
  [
    'network',
    ['network error', 'network is unreachable', 'host unreachable', 'no route to host', 'dns', 'getaddrinfo'],
  ],
  [
    'network',
    ['socket closed', 'other side closed', 'unexpected end of file', 'tls handshake', 'server closed the connection'],
  ],
  ['system', ['no space left', 'disk full', 'disk is full', 'out of memory', 'heap limit', 'cannot allocate memory']],
  ['system', ['too many open files', 'too many connections', 'resource exhausted', 'insufficient resources']],
  ['transient', ['timeout', 'timed out', 'time-out', 'deadline exceeded', 'took too long']],
  [
    'transient',
    ['not available', 'unavailable', 'temporarily', 'temporary failure', 'try again', 'try later', 'retry later'],
  ],
  ['transient', ['busy', 'overloaded', 'over capacity', 'at capacity', 'locked', 'deadlock', 'lock wait']],
  [
    'transient',
    ['bad gateway', 'internal server error', 'not ready', 'starting up', 'shutting down', 'in maintenance'],
  ],
  ['transient', ['no provider found', 'conflicting operation', 'could not serialize', 'aborted']],
  [
    'authentication',
    ['forbidden', 'unauthorized', 'unauthorised', 'not authorized', 'not authorised', 'unauthenticated'],
  ],
  [
    'authentication',
    ['access denied', 'permission denied', 'authentication failed', 'authentication required', 'login failed'],
  ],
  [
    'authentication',
    ['invalid token', 'token expired', 'expired token', 'token has expired', 'invalid api key', 'jwt expired'],
  ],
  [
    'authentication',
    ['invalid credentials', 'bad credentials', 'invalid signature', 'not permitted', 'certificate has expired'],
  ],
  [
    'validation',
    ['missing required', 'required field', 'is required', 'must be', 'must not be', 'must have', 'validation'],
  ],
  [
    'validation',
    ['invalid', 'malformed', 'bad request', 'schema', 'out of range', 'too large', 'too long', 'cannot parse'],
  ],
  ['permanent', ['unsupported', 'not supported', 'not implemented', 'unknown operation', 'no such', 'not found']],
  [
    'permanent',
    ['does not exist', "doesn't exist", 'already exists', 'duplicate', 'corrupt', 'corrupted', 'deleted', 'gone'],
  ],
]

const STATUS = /\b(?:status(?: code)?|http(?:\/\d(?:\.\d)?)?)[ :=]{1,3}([3-5]\d\d)\b/i
const NODE_CODE = /\b(?:E[A-Z]{2,15}(?:_[A-Z]{2,15})?)\b/g

export const text: Source = ({ message }) => {
  const status = STATUS.exec(message)?.[1]
  const statusSays = status === undefined ? undefined : statusKind(Number(status))
  if (statusSays) return { kind: statusSays, because: `the text says HTTP status ${status}` }
  for (const [code] of message.matchAll(NODE_CODE)) {
    const kind = nodeCodeKind(code)
    if (kind) return { kind, because: `the text says ${code}` }
  }
  const lower = message.toLowerCase()
  for (const [kind, phrases] of PHRASES) {
    const phrase = phrases.find(phrase => says(lower, phrase))
    if (phrase !== undefined) return { kind, because: `the text says "${phrase}"` }
  }
  return undefined
}

/** Whole words only: "busybox" is not busy. */
function says(lower: string, phrase: string): boolean {
  for (let at = lower.indexOf(phrase); at >= 0; at = lower.indexOf(phrase, at + 1)) {
    if (!isWord(lower[at - 1]) && !isWord(lower[at + phrase.length])) return true
  }
  return false
}

const isWord = (char: string | undefined): boolean => char !== undefined && /[a-z0-9_]/.test(char)
