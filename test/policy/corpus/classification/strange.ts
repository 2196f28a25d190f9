// Things that are no errors, and errors that resist being read.
import { type Family, like, shape } from './shape.js'

const throwing = (key: string): object =>
  Object.defineProperty(like('Error', 'busy', {}), key, {
    get() {
      throw new Error('no reading')
    },
  })

export const strange: Family = {
  family: 'strange things',
  shapes: [
    shape('text', 'authentication', () => 'access denied'),
    shape('text with a status', 'transient', () => 'HTTP 503'),
    shape('text with a code', 'network', () => 'Error: read ECONNRESET'),
    shape('a status and its phrase', 'permanent', () => '404 Not Found'),
    shape('a conflict and its phrase', 'permanent', () => '409 Conflict'),
    shape('a number at the start that is no status', 'transient', () => '404 users could not be imported'),
    shape('a template', 'validation', () => `field ${'name'} is required`),
    shape('nothing', 'transient', () => undefined),
    shape('null', 'transient', () => null),
    shape('an empty text', 'transient', () => ''),
    shape('a number', 'transient', () => 500),
    shape('a symbol', 'authentication', () => Symbol('forbidden')),
    shape('a plain object with a status', 'validation', () => ({ status: 422, detail: 'name' })),
    shape('a plain object with a code', 'network', () => ({ code: 'ETIMEDOUT' })),
    shape('a plain object with a text', 'transient', () => ({ reason: 'temporarily out of order' })),
    shape('a body with an error inside', 'rate_limited', () => ({
      error: { code: 429, message: 'Resource has been exhausted', status: 'RESOURCE_EXHAUSTED' },
    })),
    shape('a body of OAuth', 'authentication', () => ({
      error: 'invalid_grant',
      error_description: 'Token has been expired or revoked.',
    })),
    shape('problem+json', 'permanent', () => ({ type: 'about:blank', title: 'Not Found', status: 404 })),
    shape('a rejected result', 'network', () => ({
      status: 'rejected',
      reason: like('Error', 'read ECONNRESET', { code: 'ECONNRESET' }),
    })),
    shape('an object that knows its kind', 'system', () => ({ kind: 'system' })),
    shape('a function', 'transient', () => () => 'forbidden'),
    shape('bytes, very many', 'transient', () => new Uint8Array(5_000_000)),
    shape('an array, very long', 'transient', () => new Array(5_000_000).fill(1)),
    shape('a text, very long', 'transient', () => 'x'.repeat(20_000_000)),
    shape('fields, too long together for one text', 'transient', () => {
      const long = 'x'.repeat(2 ** 25)
      return Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, long]))
    }),
    shape('a message that cannot be read', 'transient', () => throwing('message')),
    shape('a code that cannot be read', 'transient', () => throwing('code')),
    shape('a cause that cannot be read', 'transient', () => throwing('cause')),
    shape('members that cannot be read', 'transient', () => throwing('errors')),
    shape(
      'a proxy that refuses everything',
      'transient',
      () =>
        new Proxy(
          {},
          {
            get() {
              throw new Error('no reading')
            },
            ownKeys() {
              throw new Error('no keys')
            },
            getPrototypeOf() {
              throw new Error('no prototype')
            },
          },
        ),
    ),
    shape('a proxy that has everything', 'transient', () => {
      const all: object = new Proxy(() => {}, { get: () => all })
      return all
    }),
    shape('causes without end', 'transient', () =>
      Object.defineProperty(new Error('x'), 'cause', {
        get(): unknown {
          return Object.create(this as object)
        },
      }),
    ),
    ...['constructor', 'toString', '__proto__', 'hasOwnProperty'].map(code =>
      shape(`the code ${code}`, 'transient', () => like('Error', 'Channel closed by server', { code })),
    ),
    shape('the name of a method of every object', 'transient', () => like('constructor', 'x', { code: 'valueOf' })),
  ],
}
