// HTTP clients and the SDKs built on them: the status is on the error, on its response, or in its code.
import axios from 'axios'
import ky from 'ky'
import { type Answer, withHttpServer } from '../servers/http.js'
import { closedPort } from '../servers/lines.js'
import { caught, type Family, like, type Shape, shape } from './shape.js'

const byAxios = (path: string, answer?: Answer, options: object = {}) =>
  withHttpServer(url => caught(() => axios.get(`${url}${path}`, options)), answer)

const byKy = (path: string, answer?: Answer, options: object = {}) =>
  withHttpServer(url => caught(() => ky.get(`${url}${path}`, { retry: 0, ...options })), answer)

const STATUSES: readonly (readonly [number, Shape['kind']])[] = [
  [400, 'validation'],
  [401, 'authentication'],
  [403, 'authentication'],
  [404, 'permanent'],
  [408, 'transient'],
  [409, 'permanent'],
  [422, 'validation'],
  [429, 'rate_limited'],
  [500, 'transient'],
  [503, 'transient'],
]

export const httpClients: Family = {
  family: 'HTTP clients',
  shapes: [
    ...STATUSES.map(([status, kind]) => shape(`axios: ${status}`, kind, () => byAxios(`/${status}`), `${status}`)),
    shape('axios: a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => axios.get(`http://127.0.0.1:${port}`))
    }),
    shape('axios: every address of localhost refused', 'network', async () => {
      const port = await closedPort()
      return caught(() => axios.get(`http://localhost:${port}`))
    }),
    shape('axios: cut off', 'network', () => byAxios('/cut')),
    shape('axios: cut off in the body', 'transient', () => byAxios('/half')),
    shape('axios: took too long', 'network', () => byAxios('/silent', undefined, { timeout: 20 })),
    shape('axios: cancelled', 'transient', () => byAxios('/silent', undefined, { signal: AbortSignal.abort() })),
    shape('axios: redirected for ever', 'permanent', () => byAxios('/loop')),
    shape('axios: more than was allowed', 'permanent', () => byAxios('/200', undefined, { maxContentLength: 2 })),
    shape('axios: not an address', 'validation', () => caught(() => axios.get('http://'))),

    ...STATUSES.slice(5).map(([status, kind]) => shape(`ky: ${status}`, kind, () => byKy(`/${status}`), `${status}`)),
    shape('ky: took too long', 'transient', () => byKy('/silent', undefined, { timeout: 20 })),
    shape('ky: cut off', 'network', () => byKy('/cut')),

    shape('got: 404', 'permanent', () =>
      like('HTTPError', 'Request failed with status code 404 (Not Found): GET http://a.test/', {
        code: 'ERR_NON_2XX_3XX_RESPONSE',
        response: { statusCode: 404, headers: {} },
      }),
    ),
    shape('got: refused', 'network', () =>
      like('RequestError', 'connect ECONNREFUSED 127.0.0.1:80', { code: 'ECONNREFUSED' }),
    ),
    shape('got: took too long', 'network', () =>
      like('TimeoutError', "Timeout awaiting 'request' for 100ms", { code: 'ETIMEDOUT', event: 'request' }),
    ),
    shape('got: too many redirects', 'permanent', () =>
      like('MaxRedirectsError', 'Redirected 10 times. Aborting.', { code: 'ERR_TOO_MANY_REDIRECTS' }),
    ),
    shape('node-fetch: refused', 'network', () =>
      like('FetchError', 'request to http://a.test/ failed, reason: connect ECONNREFUSED 10.0.0.1:80', {
        type: 'system',
        errno: 'ECONNREFUSED',
        code: 'ECONNREFUSED',
        erroredSysCall: 'connect',
      }),
    ),
    shape('node-fetch: took too long', 'transient', () =>
      like('FetchError', 'network timeout at: http://a.test/', { type: 'request-timeout' }),
    ),
    shape('node-fetch: body cut off', 'network', () =>
      like('FetchError', 'Invalid response body while trying to fetch http://a.test/: Premature close', {
        type: 'system',
        code: 'ERR_STREAM_PREMATURE_CLOSE',
      }),
    ),
    shape('superagent: 500', 'transient', () =>
      like('Error', 'Internal Server Error', { status: 500, response: { status: 500 } }),
    ),
    shape('request: took too long', 'network', () =>
      like('Error', 'ESOCKETTIMEDOUT', { code: 'ESOCKETTIMEDOUT', connect: false }),
    ),
    shape('ws: refused to upgrade', 'transient', () => like('Error', 'Unexpected server response: 503')),

    shape('GitHub: rate limit used up', 'rate_limited', () =>
      like('HttpError', 'API rate limit exceeded for user ID 1.', {
        status: 403,
        response: { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1700000000' } },
      }),
    ),
    shape('GitHub: secondary rate limit, no header', 'rate_limited', () =>
      like('HttpError', 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', {
        status: 403,
        response: { status: 403, headers: {} },
      }),
    ),
    shape('GitHub: not allowed', 'authentication', () =>
      like('HttpError', 'Resource not accessible by integration', { status: 403, response: { headers: {} } }),
    ),
    shape('Google: quota of the user', 'rate_limited', () =>
      like('GaxiosError', 'User Rate Limit Exceeded', {
        code: '403',
        status: 403,
        errors: [{ domain: 'usageLimits', reason: 'userRateLimitExceeded', message: 'User Rate Limit Exceeded' }],
      }),
    ),
    shape('Google: a refresh token that was revoked', 'authentication', () =>
      like('Error', 'invalid_grant', { code: '400', status: 400, response: { data: { error: 'invalid_grant' } } }),
    ),
    shape('Stripe: card refused', 'permanent', () =>
      like('StripeCardError', 'Your card was declined.', {
        type: 'StripeCardError',
        code: 'card_declined',
        statusCode: 402,
      }),
    ),
    shape('Stripe: no connection', 'network', () =>
      like('StripeConnectionError', 'An error occurred with our connection to Stripe. Request was retried 2 times.', {
        type: 'StripeConnectionError',
        detail: like('Error', 'read ECONNRESET', { code: 'ECONNRESET' }),
      }),
    ),
    shape('OpenAI: out of quota', 'rate_limited', () =>
      like('RateLimitError', '429 You exceeded your current quota, please check your plan', {
        status: 429,
        code: 'insufficient_quota',
        headers: {},
      }),
    ),
    shape('OpenAI: no connection', 'network', () => like('APIConnectionError', 'Connection error.')),
    shape('Slack: asked to wait', 'rate_limited', () =>
      like('Error', 'A rate-limit has been reached, you may retry this request in 30 seconds', {
        code: 'slack_webapi_rate_limited_error',
        retryAfter: 30,
      }),
    ),
    shape('SendGrid: key refused', 'authentication', () =>
      like('ResponseError', 'Unauthorized', { code: 401, response: { headers: {}, body: {} } }),
    ),
    shape('Azure: busy', 'transient', () =>
      like('RestError', 'The server is busy.', { code: 'ServerBusy', statusCode: 503 }),
    ),
    shape('Azure: not sent', 'network', () =>
      like('RestError', 'getaddrinfo ENOTFOUND a.test', { code: 'REQUEST_SEND_ERROR' }),
    ),
    shape('Elasticsearch: a shard is missing', 'transient', () =>
      like('ResponseError', 'search_phase_execution_exception', { meta: { statusCode: 503 }, statusCode: 503 }),
    ),
    shape('Boom: teapot', 'permanent', () =>
      like('Error', "I'm a teapot", { isBoom: true, output: { statusCode: 418 } }),
    ),
    shape('http-errors: gone', 'permanent', () => like('GoneError', 'Gone', { status: 410, statusCode: 410 })),
    shape('a proxy: no upstream', 'transient', () => like('Error', 'no healthy upstream')),
    shape('a proxy: upstream hung up', 'network', () =>
      like('Error', 'upstream connect error or disconnect/reset before headers. reset reason: connection termination'),
    ),
  ],
}
