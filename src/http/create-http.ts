// The HTTP API as one function from requests to answers, to mount in any server, under any path. Each request goes the same
// way: who asks → may they → does it fit → carry it out → answer. Whatever fails on the way is a problem with a code.
import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { type Clock, systemClock } from '../domain/clock.js'
import { invalid, RedriveError } from '../domain/errors.js'
import type { Json } from '../domain/json.js'
import { LIMITS } from '../domain/limits.js'
import { allows } from '../domain/scope.js'
import { metrics } from '../telemetry/metrics.js'
import { type Answered, answerOnce } from './answer-once.js'
import { Authenticator, type Identity } from './authenticate.js'
import type { Backend } from './backend.js'
import { checkRequest, idempotencyKeyIn, tagIn } from './check-request.js'
import { parseTokens } from './configured-tokens.js'
import { Feed, type FeedOptions } from './feed.js'
import type { Listening } from './feed-client.js'
import { statisticsOf } from './handlers/get-statistics.js'
import { parseBody, readBody } from './json-body.js'
import { Moment } from './moment.js'
import { allRoutes, pathOf, takesKey } from './openapi.js'
import { asRedriveError, type Problem, problemOf } from './problem.js'
import { redacted } from './redacted.js'
import { Refusals } from './refusals.js'
import type { Call, Route } from './route.js'
import { Throttle, type ThrottleOptions } from './throttle.js'

export interface HttpOptions {
  /** Where it is mounted: `/ops` makes it `/ops/api/queue-admin/…`. */
  readonly basePath?: string
  /** `name:scope+scope:secret`, comma-separated (REDRIVE_TOKENS). Beside them, those that were made count. */
  readonly tokens?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly bodyLimitBytes?: number
  /** A request that takes longer is answered with 503. */
  readonly timeoutMs?: number
  /** How many wrong tokens from one address, in which time. */
  readonly throttle?: Partial<ThrottleOptions>
  /** Whose request it is, for the throttle; behind a proxy you trust, from its header. */
  readonly clientAddress?: (request: Request, env: unknown) => string | undefined
  /** Of the stream of events: how many may listen, and how much is kept for whom. */
  readonly events?: Partial<FeedOptions>
  /** Told of what failed that should not have. Without it: one line on stderr. */
  readonly onError?: (error: unknown, about: { requestId: string; method: string; path: string }) => void
  readonly clock?: Clock
}

export interface Http {
  /** `env`: what your server passes along; of `@hono/node-server`, the client's address is taken from it. */
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>
  /** Ends the streams of events. `serve` does it when it closes. */
  readonly close: () => void
}

const BODY_LIMIT_BYTES = LIMITS.payloadBytes + 65_536
const TIMEOUT_MS = 15_000
const THROTTLE: ThrottleOptions = { failures: 20, windowMs: 60_000 }

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

interface Asked extends Pick<Listening, 'cut' | 'isGone'> {
  readonly requestId: string
  readonly request: Request
  readonly url: URL
  readonly params: Readonly<Record<string, string>>
  readonly address: string
}

export function createHttp(backend: Backend, options: HttpOptions = {}): Http {
  const { clock = systemClock, env = process.env, onError = toStderr } = options
  const basePath = checkBasePath(options.basePath ?? '')
  const bodyLimit = between('bodyLimitBytes', options.bodyLimitBytes ?? BODY_LIMIT_BYTES, 1_024, 100_000_000)
  const timeoutMs = between('timeoutMs', options.timeoutMs ?? TIMEOUT_MS, 100, 3_600_000)
  const throttle = new Throttle(clock, { ...THROTTLE, ...options.throttle })
  const configured = parseTokens(options.tokens ?? env.REDRIVE_TOKENS ?? '')
  const authenticator = new Authenticator(clock, configured, () => backend.operator.tokens.stored())
  const refusals = new Refusals(clock, entry => backend.operator.audit.write(entry))
  const moment = new Moment(clock)
  // Counted from now on, not from when somebody asks for the first time.
  metrics(backend)
  const cached = <T>(name: string, make: () => Promise<T>) => moment.cached(name, make)
  const feed = new Feed(
    { look: since => backend.operator.fleetNews(since), statistics: () => statisticsOf({ backend, cached }) },
    options.events,
    clock,
  )
  const addressOf = options.clientAddress ?? socketAddress

  /** Whoever may not is turned away before anything of the request is read. */
  const admit = async (route: Route, { request, address }: Asked): Promise<Identity> => {
    if (route.scope === 'none') return { name: 'anonymous', scopes: [] }
    const who = await authenticator.identify(request.headers.get('authorization'))
    const waitMs = throttle.waitMs(address)
    // Whoever shares an address with one who guesses is not locked out with them, unless the token could be guessed.
    if (waitMs > 0 && !who?.isMade) {
      const seconds = Math.ceil(waitMs / 1_000)
      throw new RedriveError('THROTTLED', `Too many wrong tokens; wait ${seconds} s`, {
        details: { retryAfterSeconds: seconds },
      })
    }
    const about = { route: `${route.method.toUpperCase()} ${route.path}`, address }
    if (!who) {
      throttle.failed(address)
      await refusals.record({ ...about, actor: 'anonymous', code: 'UNAUTHENTICATED' })
      throw new RedriveError('UNAUTHENTICATED', 'This needs a bearer token that is known here')
    }
    if (allows(who.scopes, route.scope)) return { name: who.name, scopes: who.scopes }
    await refusals.record({ ...about, actor: who.name, code: 'FORBIDDEN' })
    throw new RedriveError('FORBIDDEN', `Token ${who.name} lacks the scope ${route.scope}`, {
      details: { scope: route.scope },
    })
  }

  const carryOut = async (route: Route, asked: Asked): Promise<Answered> => {
    const who = await admit(route, asked)
    const { request, url, params } = asked
    const { headers } = request
    const text = route.method === 'get' ? undefined : await readBody(request, bodyLimit)
    const body = text === undefined ? undefined : parseBody(text)
    const checked = checkRequest(route, { params, query: url.searchParams, body })
    const key = takesKey(route) ? idempotencyKeyIn(headers.get('idempotency-key')) : undefined
    const seen = route.versioned && route.method !== 'get' ? tagIn(headers.get('if-match')) : undefined
    const about = { requestId: asked.requestId, method: request.method, path: url.pathname }
    const report = (error: unknown) => onError(error, about)
    const work = () => answer(route, { ...checked, who, seen, listening: listeningOf(route, asked, who), report })
    if (key === undefined) return work()
    const { pathname: path } = url
    // A token of the same name with other rights would be answered with what it may not see.
    const call = { token: [who.name, ...who.scopes].join(' '), key, method: route.method, path, body: text ?? '' }
    return answerOnce(backend.operator.requests, call, work)
  }

  const answer = async (
    route: Route,
    asked: Pick<Call, 'params' | 'query' | 'body' | 'who' | 'seen' | 'listening' | 'report'>,
  ): Promise<Answered> => {
    let [status] = route.statuses
    const headers: Record<string, string> = {}
    const { reason } = (asked.body ?? {}) as { reason?: string }
    const value = await route
      .handle({
        ...asked,
        backend,
        acting: { actor: asked.who.name, ...(reason !== undefined && { reason }) },
        cached,
        feed,
        header: (name, content) => {
          headers[name] = content
        },
        status: other => {
          status = other
        },
      })
      .finally(() => {
        if (route.method === 'get') return
        moment.forget()
        if (route.path.startsWith('/tokens')) authenticator.forget()
      })
    if (route.produces !== 'application/json')
      return { status, headers, body: value as string | ReadableStream<Uint8Array> }
    const whole = JSON.stringify(value)
    const seesAll = route.verbatim || asked.who.scopes.includes('payload')
    return { status, headers, body: seesAll ? whole : JSON.stringify(redacted(JSON.parse(whole) as Json)) }
  }

  const listeningOf = (route: Route, { request: { headers }, cut, isGone }: Asked, who: Identity): Listening => ({
    token: who.name,
    seesAll: who.scopes.includes('payload'),
    lastEventId: headers.get('last-event-id'),
    cut,
    isGone,
    stillMay: async () => {
      const now = await authenticator.identify(headers.get('authorization'))
      return now !== undefined && (route.scope === 'none' || allows(now.scopes, route.scope))
    },
  })

  const respond = async (
    context: Context,
    work: (asked: Asked) => Promise<Answered>,
    type = 'application/json',
  ): Promise<Response> => {
    const request = context.req.raw
    const requestId = randomUUID()
    const common = { ...SECURITY_HEADERS, 'x-request-id': requestId }
    const address = addressOf(request, context.env) ?? 'unknown'
    const params = context.req.param() as Record<string, string>
    const asked = { requestId, request, url: new URL(request.url), params, address, ...connectionOf(context.env) }
    const working = work(asked)
    try {
      const { status, headers, body } = await within(clock, timeoutMs, working)
      // Whoever asks for the head alone never reads: nothing is kept for them.
      if (request.method === 'HEAD' && typeof body !== 'string') await body.cancel()
      return new Response(request.method === 'HEAD' ? null : body, {
        status,
        headers: { ...common, 'content-type': type, ...headers },
      })
    } catch (thrown) {
      // A stream that comes after its time has nobody to read it.
      working.then(({ body }) => (typeof body === 'string' ? undefined : body.cancel())).catch(() => {})
      const error = asRedriveError(thrown)
      const problem = problemOf(error)
      if (problem.status >= 500) {
        onError(error.cause ?? error, { requestId, method: request.method, path: asked.url.pathname })
      }
      return new Response(JSON.stringify({ ...problem, requestId }), {
        status: problem.status,
        headers: { ...common, 'content-type': 'application/problem+json', ...headersOf(problem) },
      })
    }
  }

  const app = new Hono().basePath(basePath)
  const routes = allRoutes(basePath)
  for (const route of routes) {
    app.on(route.method.toUpperCase(), pathOf(route), context =>
      respond(context, asked => carryOut(route, asked), route.produces),
    )
  }
  for (const path of new Set(routes.map(pathOf))) {
    const methods = routes.filter(route => pathOf(route) === path).map(({ method }) => method.toUpperCase())
    app.all(path, context =>
      respond(context, async () => {
        throw new RedriveError('METHOD_NOT_ALLOWED', `${context.req.method} is not allowed here`, {
          details: { allow: methods },
        })
      }),
    )
  }
  const outer = new Hono()
  outer.route('/', app)
  outer.notFound(context =>
    respond(context, async () => {
      throw new RedriveError('NOT_FOUND', 'There is nothing at this path')
    }),
  )
  return {
    fetch: async (request, serverEnv) => outer.fetch(request, (serverEnv ?? {}) as object),
    close: () => feed.close(),
  }
}

function headersOf({ code, allow, retryAfterSeconds }: Problem): Record<string, string> {
  return {
    ...(code === 'UNAUTHENTICATED' && { 'www-authenticate': 'Bearer' }),
    ...(Array.isArray(allow) && { allow: allow.join(', ') }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  }
}

/** What takes too long goes on, but nobody waits for it any more. */
function within<T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(
      limitMs,
      () => reject(new RedriveError('TAKES_TOO_LONG', `The request took longer than ${limitMs} ms`)),
      { background: true },
    )
    work.then(resolve, reject).finally(() => timer.cancel())
  })
}

/** As @hono/node-server passes it along. */
const socketAddress = (_request: Request, env: unknown): string | undefined =>
  (env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming?.socket?.remoteAddress

/** The same for the way out: ending the stream does not end one who reads nothing, and who left is not always told. */
function connectionOf(env: unknown): Pick<Listening, 'cut' | 'isGone'> {
  const { outgoing } = (env ?? {}) as { outgoing?: { destroy?: () => void; readonly destroyed?: boolean } }
  return { cut: outgoing?.destroy && (() => outgoing.destroy?.()), isGone: () => outgoing?.destroyed === true }
}

function toStderr(error: unknown, about: object): void {
  const { message = String(error), stack } = error as Error
  process.stderr.write(
    `${JSON.stringify({ level: 'error', msg: 'a request failed', ...about, error: message, stack })}\n`,
  )
}

function checkBasePath(path: string): string {
  if (path === '' || path === '/') return ''
  if (!/^(?:\/[\w.~-]+)+$/.test(path))
    throw invalid('basePath', path, 'a path such as /ops, without a slash at its end')
  return path
}

function between(what: string, value: number, least: number, most: number): number {
  if (!(Number.isInteger(value) && value >= least && value <= most)) {
    throw invalid(what, value, `a whole number from ${least} to ${most}`)
  }
  return value
}
