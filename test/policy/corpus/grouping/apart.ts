// Two causes that look alike.
import { z } from 'zod'
import { at, because, error, pair, thrown } from './pair.js'

const User = z.object({ name: z.string(), age: z.number() })

const Adult = z.object({ age: z.number().min(18) })

export const APART = [
  // What kind of error
  pair('another type', error({}), error({ type: 'TypeError' })),
  pair('another code', error({ code: 'ECONNRESET' }), error({ code: 'ENOTFOUND' })),
  pair('another SQLSTATE', error({ code: '23505' }), error({ code: '23503' })),
  pair('another status', error({ httpStatus: 500 }), error({ httpStatus: 503 })),
  pair('with a code and without', error({ code: 'E_QUOTA' }), error({})),
  pair('another job', { ...error({}), job: 'resize' }, { ...error({}), job: 'mail' }),
  pair('another service', error({ service: 's3' }), error({ service: 'mail' })),
  // Numbers that tell
  pair('a status in the text', 'HTTP 500', 'HTTP 503'),
  pair('a status code in the text', 'Request failed with status code 404', 'Request failed with status code 500'),
  pair('a status behind a colon', 'failed, status:404', 'failed, status:500'),
  pair('a status as a field', 'failed (status=404)', 'failed (status=500)'),
  pair('an answer', 'the bank responded with 404', 'the bank responded with 503'),
  pair('an answer, shorter', 'https://a.test returned 404', 'https://a.test returned 503'),
  pair('an exit code', 'ffmpeg: exit code 1', 'ffmpeg: exit code 137'),
  pair('an exit code, otherwise', 'Process exited with code 1', 'Process exited with code 139'),
  pair('a signal', 'killed by SIGKILL', 'killed by SIGTERM'),
  pair('an errno', 'write failed, errno 28', 'write failed, errno 5'),
  pair('a SQLSTATE in the text', 'SQLSTATE 42P01', 'SQLSTATE 42P07'),
  pair('an error of Oracle', 'ORA-00942: see the manual', 'ORA-01017: see the manual'),
  pair('an error of Prisma', 'query failed: P2002', 'query failed: P2025'),
  pair('an error of Azure', 'AADSTS50011 at login', 'AADSTS70008 at login'),
  pair('an error of TypeScript', 'a.ts: TS2304', 'a.ts: TS2345'),
  pair(
    'an AMQP reply',
    'Channel closed by server: 404 (NOT-FOUND)',
    'Channel closed by server: 406 (PRECONDITION-FAILED)',
  ),
  // Words
  pair('another thing', 'user not found', 'order not found'),
  pair('a reason', 'payment refused: card expired', 'payment refused: limit reached'),
  pair('a system call', 'ENOENT: no such file or directory, open <x>', 'ENOENT: no such file or directory, unlink <x>'),
  pair('a program', 'spawn ffmpeg ENOENT', 'spawn convert ENOENT'),
  pair('a method', 'GET /orders failed', 'POST /orders failed'),
  pair('an action', 'not authorized to perform: s3:GetObject', 'not authorized to perform: s3:PutObject'),
  pair('a media type', 'unsupported type application/json', 'unsupported type text/html'),
  pair('a codec', 'unsupported codec h264', 'unsupported codec h265'),
  pair('a digest', 'unknown digest sha1', 'unknown digest sha256'),
  pair('a setting', 'DATABASE_URL is not set', 'REDIS_URL is not set'),
  pair('a word of Redis', 'LOADING Redis is loading', 'BUSY Redis is busy'),
  pair('a variable', 'total is not defined', 'totals is not defined'),
  pair('a function', 'a.save is not a function', 'a.load is not a function'),
  pair(
    'null and undefined',
    "Cannot read properties of null (reading 'x')",
    "Cannot read properties of undefined (reading 'x')",
  ),
  pair('types the wrong way round', 'expected string, received number', 'expected number, received string'),
  pair('a status of gRPC', '5 NOT_FOUND: gone', '7 PERMISSION_DENIED: gone'),
  // Names in quotes
  pair(
    'a property',
    "Cannot read properties of undefined (reading 'a')",
    "Cannot read properties of undefined (reading 'b')",
  ),
  pair('a column', 'column "a" does not exist', 'column "b" does not exist'),
  pair('a table', 'relation "users" does not exist', 'relation "orders" does not exist'),
  pair('a table of MySQL', "Table 'shop.users' doesn't exist", "Table 'shop.orders' doesn't exist"),
  pair('a constraint', 'violates unique constraint "users_email_key"', 'violates unique constraint "users_name_key"'),
  pair('a database', 'database "shop" does not exist', 'database "bank" does not exist'),
  pair('a module', "Cannot find module 'lodash'", "Cannot find module 'express'"),
  pair('a module with a scope', "Cannot find package '@a/b'", "Cannot find package '@a/c'"),
  pair('a queue', "no queue 'jobs' in vhost '/'", "no queue 'mails' in vhost '/'"),
  pair('an encoder', "Unknown encoder 'libx264'", "Unknown encoder 'libvpx'"),
  pair('a field that is required', '"name" is required', '"email" is required'),
  pair('a field that is wrong', '"age" must be a number', '"price" must be a number'),
  pair('a field of Zod', thrown(User.safeParse({ age: 1 }).error), thrown(User.safeParse({ name: 'x' }).error)),
  pair('a finding of Zod', thrown(Adult.safeParse({ age: 'x' }).error), thrown(Adult.safeParse({ age: 3 }).error)),
  pair('a provider', 'No provider found for ITL.Core/ResourceGroup', 'No provider found for ITL.Core/Tenant'),
  pair('keys of JSON', 'bad event {"id":1}', 'bad event {"user":1}'),
  // Places
  pair('another function', at('a (/app/src/a.ts:1:1)'), at('b (/app/src/a.ts:1:1)')),
  pair('another file', at('f (/app/src/a.ts:1:1)'), at('f (/app/src/b.ts:1:1)')),
  pair('another folder', at('f (/app/orders/index.ts:1:1)'), at('f (/app/users/index.ts:1:1)')),
  pair('another caller', at('f (/a/x/a.ts:1:1)', 'g (/a/x/b.ts:1:1)'), at('f (/a/x/a.ts:1:1)', 'h (/a/x/b.ts:1:1)')),
  pair('no place of ours, others of Node', at('a (node:internal/a:1:1)'), at('b (node:internal/b:1:1)')),
  pair(
    'a message that pretends to be a frame',
    error({
      message: 'x\n    at evil (/a/b.js:1:1)',
      stack: 'Error: x\n    at evil (/a/b.js:1:1)\n    at a (/x/a.js:1:1)',
    }),
    error({
      message: 'x\n    at evil (/a/b.js:1:1)',
      stack: 'Error: x\n    at evil (/a/b.js:1:1)\n    at b (/x/a.js:1:1)',
    }),
  ),
  // Causes
  pair('another cause', because('disk full'), because('out of memory')),
  pair('a cause and none', because('disk full'), because()),
  pair('another code of the cause', because({ message: 'x', code: 'A' }), because({ message: 'x', code: 'B' })),
  pair('another type of the cause', because({ message: 'x' }), because({ message: 'x', type: 'RangeError' })),
  pair('one more cause', because('disk full'), because('disk full', 'no answer')),
  pair('fetch: refused and reset', thrown(fetchFailed('ECONNREFUSED')), thrown(fetchFailed('ECONNRESET'))),
]

function fetchFailed(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`connect ${code}`), { code }) })
}
