// A route as data: how it is called, who may call it, what goes in and comes out, and who answers. The shapes are used to
// check requests, to type handlers and to write the OpenAPI document.
import type { z } from '@hono/zod-openapi'
import type { ErrorCode } from '../domain/errors.js'
import type { Scope } from '../domain/scope.js'
import type { Acting } from '../operator/context.js'
import type { Identity } from './authenticate.js'
import type { Backend } from './backend.js'
import type { Feed } from './feed.js'
import type { Listening } from './feed-client.js'

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** One request, checked. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly backend: Backend
  readonly who: Identity
  /** For the audit: the token's name and, where the request gives one, a reason. */
  readonly acting: Acting
  /** The ETag of what the caller saw (If-Match); undefined: whatever it is. */
  readonly seen: string | undefined
  /** What happens, as it happens, and who would listen. */
  readonly feed: Feed
  readonly listening: Listening
  /** The same answer for all who ask within a moment; forgotten with every change. */
  cached<T>(key: string, make: () => Promise<T>): Promise<T>
  /** Tells whoever runs the server of something that went wrong beside the answer. */
  report(error: unknown): void
  /** Sets a header of the answer. */
  header(name: string, value: string): void
  /** Sets its status, where it is not the route's first one. */
  status(status: number): void
}

/** What a handler gives for a shape: where JSON has a text, a Date will do. */
export type Answer<T> = T extends string
  ? string extends T
    ? string | Date
    : T
  : T extends readonly (infer Item)[]
    ? readonly Answer<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Answer<T[Key]> }
      : T

export type Produces = 'application/json' | 'text/event-stream' | 'text/plain'

export interface Route {
  readonly method: Method
  /** With `:name` for what varies. */
  readonly path: string
  /** `base`: below /api/queue-admin. `root`: beside it. */
  readonly at: 'base' | 'root'
  /** `none`: without a token. */
  readonly scope: Scope | 'none'
  readonly tag: string
  readonly summary: string
  readonly params: z.ZodType | undefined
  readonly query: z.ZodType | undefined
  readonly body: z.ZodType | undefined
  /** A request without a body is one with an empty object. */
  readonly bodyRequired: boolean
  readonly response: z.ZodType
  /** What its answer is written in; all but JSON leaves as its handler gives it. */
  readonly produces: Produces
  readonly statuses: readonly [number, ...number[]]
  /** What it may answer beside what every call may. */
  readonly errors: readonly ErrorCode[]
  /** Its ETag is the version of what it returns; If-Match is heard. */
  readonly versioned: boolean
  /** Never redacted: it holds nothing of jobs, and something that must be shown. */
  readonly verbatim: boolean
  readonly handle: (call: Call) => Promise<unknown>
}

type Shape = z.ZodType | undefined
type Value<S extends Shape> = S extends z.ZodType ? z.output<S> : undefined

export interface RouteOptions<P extends Shape, Q extends Shape, B extends Shape, R extends z.ZodType> {
  readonly at?: 'root'
  readonly scope: Scope | 'none'
  readonly tag: string
  readonly summary: string
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly bodyRequired?: boolean
  readonly response: R
  readonly produces?: Produces
  readonly statuses?: readonly [number, ...number[]]
  readonly errors?: readonly ErrorCode[]
  readonly versioned?: boolean
  readonly verbatim?: boolean
  readonly handle: (
    call: Call<Value<P>, Value<Q>, Value<B>>,
  ) => Promise<Answer<z.input<R>> | ReadableStream<Uint8Array>>
}

export function route<
  R extends z.ZodType,
  P extends Shape = undefined,
  Q extends Shape = undefined,
  B extends Shape = undefined,
>(method: Method, path: string, options: RouteOptions<P, Q, B, R>): Route {
  const { at = 'base', params, query, body, bodyRequired = false, statuses = [200], errors = [] } = options
  const { versioned = false, verbatim = false, produces = 'application/json', handle } = options
  return {
    ...{ method, path, at, params, query, body, bodyRequired, statuses, errors, versioned, verbatim },
    scope: options.scope,
    tag: options.tag,
    summary: options.summary,
    response: options.response,
    produces,
    // What it is called with was checked by its own shapes.
    handle: handle as unknown as Route['handle'],
  }
}
