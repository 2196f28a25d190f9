// Errors around errors: the evidence may be anywhere, and the best of it counts.
import { PermanentError, TransientError } from '../../../../src/domain/errors.js'
import { closedPort } from '../servers/lines.js'
import { caught, type Family, like, shape } from './shape.js'

const wrap = (message: string, cause: unknown) => new Error(message, { cause })
const status = (code: number) => like('HttpError', `status ${code}`, { status: code })
const refused = () => like('Error', 'connect ECONNREFUSED 127.0.0.1:80', { code: 'ECONNREFUSED' })

export const chains: Family = {
  family: 'causes and aggregates',
  shapes: [
    shape('a status below', 'transient', () => wrap('could not save', status(503)), 'in its cause'),
    shape('a status three levels down', 'rate_limited', () => wrap('a', wrap('b', wrap('c', status(429))))),
    shape('a text above, a code below', 'network', () => wrap('invalid answer', refused())),
    shape('a TypeError above, a code below', 'network', () =>
      Object.assign(new TypeError('x is not a function'), { cause: refused() }),
    ),
    shape('a status above, another below', 'validation', () => Object.assign(status(422), { cause: status(503) })),
    shape('said above', 'permanent', () => new PermanentError('no', { cause: status(503) })),
    shape('said below', 'transient', () => wrap('invalid', new TransientError('later'))),
    shape('a text below nothing', 'authentication', () => wrap('step 3 failed', new Error('access denied'))),
    shape('a cause that is text', 'rate_limited', () => wrap('step 3 failed', 'Too Many Requests')),
    shape('a cause that is data', 'authentication', () => wrap('step 3 failed', { status: 401 })),
    shape('a cause in a circle', 'network', () => {
      const inner = refused()
      const outer = wrap('outer', inner)
      return Object.assign(inner, { cause: outer })
    }),
    shape('fetch below a wrapper', 'network', async () => {
      const port = await closedPort()
      return wrap('cannot reach the bank', await caught(() => fetch(`http://127.0.0.1:${port}`)))
    }),
    shape('an aggregate: one can heal', 'transient', () => new AggregateError([status(404), status(503)])),
    shape('an aggregate: none can heal', 'validation', () => new AggregateError([status(400), status(422)])),
    shape('an aggregate: one cannot be read', 'transient', () => new AggregateError([status(404), new Error('hm')])),
    shape('an aggregate of texts', 'permanent', () => new AggregateError(['not supported', 'no such thing'])),
    shape('an aggregate below a wrapper', 'network', () => wrap('no mirror answers', new AggregateError([refused()]))),
    shape(
      'an aggregate in an aggregate',
      'rate_limited',
      () => new AggregateError([new AggregateError([status(404)]), new AggregateError([status(429)])]),
    ),
    shape('an aggregate without members', 'transient', () => new AggregateError([], 'all failed')),
    shape('several errors in an array', 'transient', () => [status(404), status(503)]),
    shape('what using and disposing threw', 'network', () =>
      like('SuppressedError', 'An error was suppressed during disposal.', {
        error: refused(),
        suppressed: new TypeError('x'),
      }),
    ),
    shape('an inner error by another name', 'network', () => like('VError', 'cannot sync', { innerError: refused() })),
    shape('the older way: originalError', 'transient', () =>
      like('Error', 'cannot sync', { originalError: status(503) }),
    ),
  ],
}
