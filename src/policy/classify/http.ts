// HTTP status: on the error, on its response, or as a numeric `code`.
import type { Kind } from '../../domain/failure.js'
import { headersOf } from '../retry-after/headers.js'
import { nothingRemains } from '../retry-after.js'
import { byWord, type Source } from './evidence.js'
import { asStatus } from './facts.js'
import { saysRateLimited } from './phrases.js'

const STATUSES = byWord({
  authentication: '401 403 407 511',
  rate_limited: '429',
  validation: '400 411 412 413 414 415 416 417 422 428 431',
  permanent: '402 404 405 406 409 410 418 426 451 501 505 506 508 510',
  // 421 reached the wrong server, 423 is locked, 424 waits for another, 425 is too early, 499 was given up.
  transient: '408 421 423 424 425 499',
  system: '507',
})

/** The rest by their first digit: a redirect nobody followed, an unknown refusal, an unknown trouble over there. */
const CLASSES = byWord({ permanent: '3 4', transient: '5' })

/** RFC 6749: a token or secret that is refused comes as 400. */
const OAUTH = /\b(?:invalid_grant|invalid_client|unauthorized_client)\b/

export function statusKind(status: number): Kind | undefined {
  return STATUSES.get(String(status)) ?? CLASSES.get(String(status).charAt(0))
}

export const http: Source = ({ error, status: stated, code, message }) => {
  const status = stated ?? asStatus(code)
  const kind = status === undefined ? undefined : statusKind(status)
  if (kind === undefined) return undefined
  if (status === 403) {
    const headers = headersOf(error)
    if (headers.has('retry-after') || nothingRemains(headers))
      return { kind: 'rate_limited', because: 'HTTP status 403 with a time to wait' }
    // GitHub and Google limit rates with a 403 and say so in the text alone.
    if (saysRateLimited(message)) return { kind: 'rate_limited', because: 'HTTP status 403 that speaks of a rate' }
  }
  if (status === 400 && OAUTH.test(message.slice(0, 200)))
    return { kind: 'authentication', because: 'HTTP status 400 of an OAuth server that refuses the credentials' }
  return { kind, because: `HTTP status ${status}` }
}
