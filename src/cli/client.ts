// The one way to the HTTP API: adds the token, waits no longer than it should, and turns whatever goes wrong into one
// line with a code and what to do about it.
import type { Clock } from '../domain/clock.js'
import { CliError, EXIT, exitOfStatus, interrupted } from './exit.js'
import { nextStep } from './next-step.js'

export interface ClientOptions {
  /** Where it is served: `http://127.0.0.1:3000`, or below a path. */
  readonly url: string
  readonly token: string | undefined
  readonly clock: Clock
  /** Ctrl-C. */
  readonly signal: AbortSignal
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface Problem {
  readonly code?: string
  readonly detail?: string
  readonly requestId?: string
  readonly issues?: readonly { readonly field: string; readonly message: string }[]
}

const BASE = '/api/queue-admin'
/** Longer than the server takes to give up by itself. */
const TIMEOUT_MS = 60_000

export class Client {
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
    return this.#ask('GET', search.size === 0 ? path : `${path}?${search}`)
  }

  /** `whole`: once begun it is awaited, whatever the person presses. */
  post<T>(path: string, body: object = {}, { whole = false } = {}): Promise<T> {
    return this.#ask('POST', path, body, whole)
  }

  put<T>(path: string, body: object): Promise<T> {
    return this.#ask('PUT', path, body)
  }

  patch<T>(path: string, body: object): Promise<T> {
    return this.#ask('PATCH', path, body)
  }

  delete<T>(path: string, body: object = {}): Promise<T> {
    return this.#ask('DELETE', path, body)
  }

  async #ask<T>(method: Method, path: string, body?: object, whole = false): Promise<T> {
    const { url, token, clock, signal } = this.#options
    const limit = new AbortController()
    const timer = clock.timer(TIMEOUT_MS, () => limit.abort())
    try {
      const response = await fetch(`${url}${BASE}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // A token goes where it was meant to go, and nowhere else.
        redirect: 'manual',
        signal: whole ? limit.signal : AbortSignal.any([limit.signal, signal]),
      })
      const text = await response.text()
      if (!response.ok) throw refusal(response, text, url)
      return parsed(text, response, url) as T
    } catch (error) {
      if (error instanceof CliError) throw error
      if (signal.aborted && !whole) throw interrupted()
      if (limit.signal.aborted) throw new CliError(`${url} did not answer within ${TIMEOUT_MS / 1_000} s`)
      throw unreachable(url, error)
    } finally {
      timer.cancel()
    }
  }
}

function parsed(text: string, response: Response, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw strange(response, url)
  }
}

function refusal(response: Response, text: string, url: string): CliError {
  let problem: Problem = {}
  try {
    problem = (JSON.parse(text) ?? {}) as Problem
  } catch {}
  const { code, detail, issues, requestId } = problem
  if (typeof code !== 'string' || typeof detail !== 'string') return strange(response, url)
  const untold = (Array.isArray(issues) ? issues : []).filter(
    ({ field, message }) => !detail.includes(field === '' ? message : `${field}: ${message}`),
  )
  const fields = untold.map(({ field, message }) => `${field} ${message}`).join('; ')
  const id = response.status >= 500 && requestId !== undefined ? ` (request ${requestId})` : ''
  return new CliError(`${detail}${fields && `: ${fields}`}${id}`, {
    exit: exitOfStatus(response.status),
    code,
    ...optionalNext(nextStep(code)),
  })
}

const optionalNext = (next: string | undefined) => (next === undefined ? {} : { next })

const strange = ({ status }: Response, url: string): CliError =>
  new CliError(`What is at ${url} is not the Redrive API: it answered ${status}`, {
    next: 'check REDRIVE_URL or --url',
  })

function unreachable(url: string, error: unknown): CliError {
  const { cause = error } = error as { cause?: unknown }
  const { code, message } = cause as { code?: string; message?: string }
  return new CliError(`Cannot connect to ${url} (${code ?? message ?? 'no answer'})`, {
    exit: EXIT.error,
    next: 'is `redrive serve` running there? REDRIVE_URL or --url says where to look',
    cause: error,
  })
}
