// A Redrive with its HTTP API, as a user mounts it, and someone who calls it.
import { createHttp, type Http, type HttpOptions } from '../../../src/http/index.js'
import { defineJob, PermanentError, type Redrive } from '../../../src/index.js'
import { type Library, type LibraryKind, openLibrary } from '../../support/library.js'

export const TOKENS = [
  'reader:read:reader-secret',
  'seer:read+payload:seer-secret',
  'worker:operate:worker-secret',
  'root:admin:root-secret',
  'eye:payload:eye-secret',
].join(',')

export const SECRETS = {
  read: 'reader-secret',
  'read+payload': 'seer-secret',
  operate: 'worker-secret',
  admin: 'root-secret',
  payload: 'eye-secret',
} as const

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API says is looked at
  readonly body: any
}

export interface Ask {
  readonly token?: string | null
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Desk extends Library {
  readonly http: Http
  /** `'POST /queues/mail/pause'`: below the base unless the path begins with `//`. */
  ask(what: string, asked?: Ask): Promise<Answer>
}

export async function openDesk(kind: LibraryKind, options: HttpOptions = {}): Promise<Desk> {
  const library = await openLibrary(kind)
  const http = createHttp(library.redrive, { tokens: TOKENS, env: {}, ...options })
  return { ...library, http, ask: (what, asked) => askOf(http.fetch, what, asked) }
}

export async function askOf(
  fetch: (request: Request) => Promise<Response>,
  what: string,
  { token = SECRETS.admin, body, headers = {} }: Ask = {},
  origin = 'http://localhost',
): Promise<Answer> {
  const [method = '', path = ''] = what.split(' ')
  const url = path.startsWith('//') ? path.slice(1) : `/api/queue-admin${path}`
  const request = new Request(origin + url, {
    method,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const response = await fetch(request)
  const type = response.headers.get('content-type') ?? ''
  const text = type === 'text/event-stream' ? await firstOf(response) : await response.text()
  const isText = type === 'text/event-stream' || type.startsWith('text/plain; version')
  const told = text === '' ? undefined : isText ? text : JSON.parse(text)
  return { status: response.status, headers: response.headers, body: told }
}

/** What a stream begins with; nobody waits for its end. */
async function firstOf(response: Response): Promise<string> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

/** A job that dies at once, of the message that it is given. */
export const mortal = (queue: string) =>
  defineJob({
    name: `die-${queue}`,
    queue,
    service: 'bank',
    retry: { attempts: 1 },
    handler: (payload: { message: string; [more: string]: unknown }) => {
      // Of a kind that says nothing of the service: its jobs would be held rather than die.
      throw new PermanentError(payload.message)
    },
  })

/** Lets one die and returns its id. */
export async function aDeadLetter(
  { redrive, next }: Library,
  queue: string,
  payload: { message: string; [more: string]: unknown } = { message: 'no' },
): Promise<string> {
  const job = mortal(queue)
  const worker = redrive.work([job])
  try {
    const died = next('job.dead', event => event.job.queue === queue)
    await redrive.enqueue(job, payload)
    return (await died).job.id
  } finally {
    await worker.stop()
  }
}

export type { Redrive }
