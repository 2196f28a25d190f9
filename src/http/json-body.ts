// The body of a request: JSON, of bounded size and depth, or refused before anything looks at it.
import { RedriveError } from '../domain/errors.js'

/** Postgres and JSON.stringify walk data by calling themselves. */
const DEEPEST = 100

const isJson = (type: string | null): boolean => /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '')

/** Undefined: there is none. */
export async function readBody(request: Request, limitBytes: number): Promise<string | undefined> {
  const told = Number(request.headers.get('content-length') ?? 0)
  if (told > limitBytes) throw tooLarge(limitBytes)
  const type = request.headers.get('content-type')
  if (type !== null && !isJson(type)) throw notJson(type)
  if (request.body === null) return undefined
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > limitBytes) throw tooLarge(limitBytes)
    chunks.push(chunk)
  }
  if (bytes === 0) return undefined
  if (type === null) throw notJson('missing')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw unreadable('is not UTF-8')
  }
}

export function parseBody(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable('is not valid JSON')
  }
  if (isDeeper(value, DEEPEST)) throw unreadable(`is nested deeper than ${DEEPEST} levels`)
  return value
}

/** Level by level, so that depth costs no stack. */
function isDeeper(value: unknown, most: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= most; depth += 1) {
    level = level.flatMap(item => (item !== null && typeof item === 'object' ? Object.values(item) : []))
    if (level.length === 0) return false
  }
  return true
}

const tooLarge = (limit: number): RedriveError =>
  new RedriveError('BODY_TOO_LARGE', `The body is over ${limit} bytes`, { details: { limitBytes: limit } })

const notJson = (type: string): RedriveError =>
  new RedriveError('MEDIA_TYPE_UNSUPPORTED', `The content-type is ${type.slice(0, 100)}; it must be application/json`)

const unreadable = (why: string): RedriveError =>
  new RedriveError('REQUEST_INVALID', `The body ${why}`, {
    details: { issues: [{ in: 'body', field: '', message: why }] },
  })
