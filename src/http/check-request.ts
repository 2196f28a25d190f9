// Whether a request fits its route's shapes: every field that does not is named, with what it may be.
import { z } from '@hono/zod-openapi'
import { RedriveError } from '../domain/errors.js'
import type { Route } from './route.js'

interface Issue {
  readonly in: 'path' | 'query' | 'body' | 'header'
  readonly field: string
  readonly message: string
}

const MOST_ISSUES = 20
const NAME_CHARS = 100

export interface Parts {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: unknown
}

export interface Checked {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

export function checkRequest(route: Route, { params, query, body }: Parts): Checked {
  const issues: Issue[] = []
  const check = (where: Issue['in'], shape: z.ZodType | undefined, value: unknown): unknown => {
    const fits = (shape ?? NOTHING).safeParse(value)
    if (fits.success) return fits.data
    for (const issue of fits.error.issues) issues.push(...told(where, shape ?? NOTHING, issue))
    return undefined
  }
  const twice = [...new Set(query.keys())].find(name => query.getAll(name).length > 1)
  if (twice !== undefined)
    issues.push({ in: 'query', field: twice.slice(0, NAME_CHARS), message: 'must be given once' })
  const checked = {
    params: check('path', route.params, params),
    query: check('query', route.query, Object.fromEntries(query)),
    body: check('body', route.body, body ?? (route.bodyRequired ? undefined : {})),
  }
  if (issues.length > 0) throw refused(issues)
  return checked
}

/** A part that a route does not have must be empty: what nobody reads was meant for somebody. */
const NOTHING = z.strictObject({})

function told(where: Issue['in'], shape: z.ZodType, issue: z.core.$ZodIssue): Issue[] {
  const field = issue.path.map(String).join('.')
  if (issue.code !== 'unrecognized_keys') return [{ in: where, field, message: issue.message }]
  const known = field === '' && shape instanceof z.ZodObject ? Object.keys(shape.shape) : []
  const allowed = known.length > 0 ? `; it must be one of ${known.join(', ')}` : ''
  return issue.keys.map(key => {
    const name = key.slice(0, NAME_CHARS)
    return { in: where, field: field === '' ? name : `${field}.${name}`, message: `is not known here${allowed}` }
  })
}

export function refused(issues: readonly Issue[]): RedriveError {
  const [first] = issues
  const place = first ? [first.in, first.field].filter(part => part !== '').join(' ') : 'request'
  return new RedriveError('REQUEST_INVALID', `${place}: ${first?.message ?? 'is not allowed'}`, {
    details: { issues: issues.slice(0, MOST_ISSUES) },
  })
}

/** What If-Match names, without its quotes, as an ETag gave it. Undefined: nothing was named, or anything will do. */
export function tagIn(header: string | null): string | undefined {
  if (header === null || header === '*') return undefined
  const [, tag] = /^(?:W\/)?"([\w-]{1,64})"$/.exec(header.trim()) ?? []
  if (tag === undefined) throw refused([STRANGE_TAG])
  return tag
}

/** An ETag that is the number of a version. */
export function versionIn(tag: string | undefined): number | undefined {
  if (tag !== undefined && !/^\d{1,9}$/.test(tag)) throw refused([STRANGE_TAG])
  return tag === undefined ? undefined : Number(tag)
}

const STRANGE_TAG: Issue = {
  in: 'header',
  field: 'If-Match',
  message: 'must be an ETag of this very thing, such as "3"',
}

export function idempotencyKeyIn(header: string | null): string | undefined {
  if (header === null) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(header)) {
    throw refused([{ in: 'header', field: 'Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' }])
  }
  return header
}
