// One cause, seen twice: numbers, ids, addresses, paths, hosts, quoted values, places that move with a deployment.
import { z } from 'zod'
import { at, because, error, pair, thrown } from './pair.js'

const NOBODY = z.array(z.object({ name: z.string() }))

export const JOIN = [
  // Numbers
  pair('a number', 'user 42 not found', 'user 1234567 not found'),
  pair('a number at the end of a word', 'shard-3 is behind', 'shard-17 is behind'),
  pair('a signed, broken number', 'balance -3.50 is too low', 'balance 0.07 is too low'),
  pair('a number with separators', 'read 1,234,567 rows', 'read 12 rows'),
  pair('a very small number', 'step 1e-7 is too small', 'step 0.001 is too small'),
  pair('a list of numbers', 'ids [1, 2, 3] are missing', 'ids [77] are missing'),
  pair('a place in a list', 'items[3].price is wrong', 'items[120].price is wrong'),
  pair('a share', 'disk is 97% full', 'disk is 99.5% full'),
  pair('a size', 'file of 900 KB refused', 'file of 1.2 MB refused'),
  pair('a size without a space', 'file of 900KB refused', 'file of 12MiB refused'),
  pair('a duration', 'gave up after 850ms', 'gave up after 1.5s'),
  pair('a duration in words', 'gave up after 850 ms', 'gave up after 2 seconds'),
  pair('a duration in parts', 'gave up after 1m30s', 'gave up after 45s'),
  pair('which one of many', 'the 2nd mirror failed', 'the 13th mirror failed'),
  pair('how often', 'attempt 2/5 failed', 'attempt 4/5 failed'),
  // Ids
  pair('a UUID', 'job 3f2504e0-4f89-41d3-9a0c-0305e82c3301 died', 'job 6BA7B810-9DAD-11D1-80B4-00C04FD430C8 died'),
  pair('a UUID without dashes', 'trace 3f2504e04f8941d39a0c0305e82c3301', 'trace 6ba7b8109dad11d180b400c04fd430c8'),
  pair('a ULID', 'event 01ARZ3NDEKTSV4RRFFQ69G5FAV lost', 'event 01BX5ZZKBKACTAV9WEVGEMMVRZ lost'),
  pair('a nanoid', 'session V1StGXR8_Z5jdHi6B-myT ended', 'session FyvHzZcQ_ptGkWm-xLoaB ended'),
  pair('an ObjectId', 'no document 507f1f77bcf86cd799439011', 'no document 65a1b2c3d4e5f60718293a4b'),
  pair("a provider's id", 'no such customer: cus_9s6XKzkNRiz8i3', 'no such customer: cus_NffrFeUfNV2Hib'),
  pair('a commit', 'build of 9fceb02 failed', 'build of 1a410efbd13591db07496601ebc7a059dd55cfe9 failed'),
  pair('an address in memory', 'bad pointer 0x7ffd5e8c', 'bad pointer 0x10'),
  pair('an IBAN', 'account DE89370400440532013000 is closed', 'account GB29NWBK60161331926819 is closed'),
  pair('a token', 'bad token eyJhbGciOiJIUzI1NiJ9.e30.XmNK', 'bad token eyJ0eXAiOiJKV1QifQ.eyJhIjoxfQ.Zm9v'),
  pair('an id of AWS', 'AccessDenied (request id: 4442587FB7D0A2F9)', 'AccessDenied (request id: 79104EXAMPLEB723)'),
  pair(
    'an ARN',
    'arn:aws:iam::123456789012:user/ann may not',
    'arn:aws:sts::210987654321:assumed-role/app/i-1 may not',
  ),
  pair('a name in a cluster', 'lost worker-7d9f8b6c5d-x2x4z', 'lost worker-5c4f9bd77-bcdfg'),
  // Addresses and hosts
  pair('an e-mail', 'mail to ann@example.org bounced', 'mail to bob.smith+x@mail.example.com bounced'),
  pair('an IPv4 address', 'connect ECONNREFUSED 10.0.0.1:5432', 'connect ECONNREFUSED 192.168.7.33:5432'),
  pair('IPv4 and IPv6', 'connect ECONNREFUSED 127.0.0.1:80', 'connect ECONNREFUSED ::1:80'),
  pair('a host', 'getaddrinfo ENOTFOUND db-1', 'getaddrinfo ENOTFOUND db.eu-west-1.rds.amazonaws.com'),
  pair('a host and port', 'cannot connect to redis:6379', 'cannot connect to cache-2.internal:6380'),
  pair('a hardware address', 'no lease for 00:1B:44:11:3A:B7', 'no lease for f0-18-98-0a-bb-01'),
  pair('a URL', 'GET https://a.example/x?y=1 failed', 'GET http://10.0.0.1:8080/other#z failed'),
  // Paths
  pair('a path', 'cannot open /var/data/x', 'cannot open /tmp/a/b/c.txt'),
  pair('a path of Windows', 'cannot open C:\\data\\x.txt', 'cannot open D:/other'),
  pair('a key of an object store', 'in/photo.png is broken', 'in/2024/01/other.jpeg is broken'),
  pair('a path in quotes', "ENOENT: no such file, open '/tmp/a b'", "ENOENT: no such file, open '/srv/x'"),
  // Quoted values
  pair('a quoted value', 'User "ann" not found', 'User "bob the builder" not found'),
  pair('other quotes', "bad value 'x'", "bad value 'y z'"),
  pair('backticks', 'no user `ann`', 'no user `bob`'),
  pair('typographic quotes', 'no user “ann”', 'no user “Bob O’Neill”'),
  pair('a quote within', 'got "a \\"b\\" c" instead', 'got "d" instead'),
  pair('JSON with other values', 'bad event {"id":1,"user":"ann"}', 'bad event {"id":22,"user":"bob"}'),
  pair('the value of a key', 'Key (name)=(ann) already exists.', 'Key (name)=(bob smith) already exists.'),
  pair('what JSON.parse saw', thrown(jsonError('<html>')), thrown(jsonError('xyz'))),
  pair(
    'a row of a list that does not fit',
    thrown(NOBODY.safeParse([{}]).error),
    thrown(NOBODY.safeParse([{ name: 'a' }, {}]).error),
  ),
  // Times
  pair('a time', 'stale since 2024-01-02T03:04:05.678Z', 'stale since 2023-12-31T23:59:59+01:00'),
  pair('a time in words', 'until Sun, 06 Nov 1994 08:49:37 GMT', 'until Mon, 01 Jan 2024 00:00:00 GMT'),
  pair('a date and a time', 'no rates for 2024-01-02 03:04:05', 'no rates for 2023-12-31 23:59:59'),
  // How it is written
  pair('white space', 'a  b\n\tc', 'a b c'),
  pair('colours', '\u001b[31mbuild failed\u001b[39m', 'build failed'),
  pair('what follows a long message', `bad row: ${'x, '.repeat(300)}`, `bad row: ${'x, '.repeat(200)} and y`),
  pair('a partition', 'relation "events_2024_01" does not exist', 'relation "events_2023_12" does not exist'),
  pair('a module that moved', "Cannot find module '/srv/1/dist/a.js'", "Cannot find module '/srv/2/dist/a.js'"),
  // Places
  pair('another line', at('resize (/app/src/resize.ts:10:5)'), at('resize (/app/src/resize.ts:99:1)')),
  pair('another folder of deployment', at('f (/srv/releases/41/dist/a.js:1:1)'), at('f (/opt/app/dist/a.js:1:1)')),
  pair('a release as the last folder', at('f (/srv/releases/41/a.js:1:1)'), at('f (/srv/releases/42/a.js:1:1)')),
  pair('a commit as the last folder', at('f (/srv/9fceb02d/a.js:1:1)'), at('f (/srv/1a410efb/a.js:1:1)')),
  pair('a build', at('f (/app/chunk-4F9A2C.js:1:1)'), at('f (/app/chunk-77B01D.js:9:9)')),
  pair('a URL of a module', at('f (file:///app/src/a.ts:1:1)'), at('f (/app/src/a.ts:2:2)')),
  pair('a query behind a module', at('f (/app/src/a.ts?v=12:1:1)'), at('f (/app/src/a.ts?v=13:1:1)')),
  pair('Windows', at('f (C:\\app\\src\\a.ts:1:1)'), at('f (/app/src/a.ts:1:1)')),
  pair('awaited or not', at('async f (/app/src/a.ts:1:1)'), at('f (/app/src/a.ts:1:1)')),
  pair('seen through another object', at('Object.f [as handler] (/app/src/a.ts:1:1)'), at('f (/app/src/a.ts:1:1)')),
  pair(
    'another version of a library',
    at('send (/app/node_modules/a/x.js:1:1)', 'run (/app/src/run.ts:1:2)'),
    at('post (/app/node_modules/.pnpm/a@2/y.js:1:1)', 'run (/app/src/run.ts:7:2)', 'node:internal/x:1:1'),
  ),
  pair(
    'a deeper recursion',
    at('walk (/app/src/a.ts:1:1)', 'main (/app/src/b.ts:1:1)'),
    at(...Array.from({ length: 9 }, () => 'walk (/app/src/a.ts:1:1)'), 'main (/app/src/b.ts:1:1)'),
  ),
  // Causes
  pair('a cause with another number', because('row 1'), because('row 22')),
  pair('more members of the same kind', because('row 1'), because('row 1', 'row 2', 'row 3')),
  pair('members in another order', because('disk full', 'no answer'), because('no answer', 'disk full')),
  pair('both addresses of a name', thrown(refusedBoth('::1', '127.0.0.1')), thrown(refusedBoth('127.0.0.1', '::1'))),
  pair('another worker, the same job', { ...error({}), job: 'resize' }, { ...error({}), job: 'resize' }),
  pair(
    'another service of one job',
    { ...error({ service: 'a' }), job: 'x' },
    { ...error({ service: 'b' }), job: 'x' },
  ),
]

function jsonError(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    return thrown
  }
}

function refusedBoth(...addresses: readonly string[]): Error {
  const errors = addresses.map(address =>
    Object.assign(new Error(`connect ECONNREFUSED ${address}:5432`), { code: 'ECONNREFUSED' }),
  )
  return Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' })
}
