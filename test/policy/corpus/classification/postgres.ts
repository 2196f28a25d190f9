// Postgres, provoked in an embedded one and, for what concerns connections, on a server; then the clients' own errors.
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { afterAll } from 'vitest'
import { serverUrl } from '../../../support/databases.js'
import { closedPort, withSocketServer } from '../servers/lines.js'
import { caught, type Family, like, type Shape, shape } from './shape.js'

let embedded: Promise<PGlite> | undefined
afterAll(async () => (await embedded)?.close())

const SETUP = `
  CREATE TABLE IF NOT EXISTS a (id int PRIMARY KEY, name text NOT NULL, small varchar(3), CHECK (id > 0));
  CREATE TABLE IF NOT EXISTS b (a int REFERENCES a);
  INSERT INTO a (id, name) VALUES (1, 'x') ON CONFLICT DO NOTHING;`

async function sql(text: string): Promise<unknown> {
  embedded ??= PGlite.create()
  const database = await embedded
  await database.exec(SETUP)
  const thrown = await caught(() => database.exec(text))
  await database.exec('ROLLBACK')
  return thrown
}

async function onServer(act: (client: pg.Client, url: string) => Promise<unknown>): Promise<unknown> {
  const url = await serverUrl()
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    return await caught(() => act(client, url))
  } finally {
    await client.end().catch(() => {})
  }
}

/** As pg and PGlite make a server's error. */
const state = (code: string, message: string) =>
  Object.assign(new pg.DatabaseError(message, message.length, 'error'), {
    code,
    severity: 'ERROR',
    routine: 'somewhere',
  })

const embeddedShapes: readonly (readonly [string, Shape['kind'], string])[] = [
  ['a value twice', 'permanent', "INSERT INTO a VALUES (1, 'x')"],
  ['a reference to nothing', 'permanent', 'INSERT INTO b VALUES (99)'],
  ['a required column', 'validation', 'INSERT INTO a VALUES (2, NULL)'],
  ['a check', 'validation', "INSERT INTO a VALUES (-1, 'x')"],
  ['text that is no number', 'validation', "SELECT 'x'::int"],
  ['a number out of range', 'validation', 'SELECT 99999999999999::int'],
  ['a division by zero', 'validation', 'SELECT 1 / 0'],
  ['text that is too long', 'validation', "INSERT INTO a VALUES (3, 'x', 'long')"],
  ['JSON that is none', 'validation', "SELECT '{'::json"],
  ['a table that is not there', 'permanent', 'SELECT * FROM nowhere'],
  ['a column that is not there', 'permanent', 'SELECT nothing FROM a'],
  ['a function that is not there', 'permanent', 'SELECT nothing(1)'],
  ['a typing error', 'permanent', 'SELCT 1'],
  ['two rows where one may be', 'permanent', 'SELECT (SELECT generate_series(1, 2))'],
  ['raised by a function', 'permanent', "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$"],
  [
    'raised as a serialisation failure',
    'transient',
    "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$",
  ],
  ['a schema that is not there', 'permanent', 'CREATE TABLE nowhere.x ()'],
]

export const postgres: Family = {
  family: 'Postgres',
  shapes: [
    ...embeddedShapes.map(([name, kind, text]) => shape(name, kind, () => sql(text), 'SQLSTATE')),
    shape('server: a statement over its limit', 'transient', () =>
      onServer(async client => {
        await client.query('SET statement_timeout = 20')
        await client.query('SELECT pg_sleep(5)')
      }),
    ),
    shape('server: a lock that is taken', 'transient', () =>
      onServer(async (client, url) => {
        const other = new pg.Client(url)
        await other.connect()
        try {
          await other.query('SELECT pg_advisory_lock(741852)')
          await client.query('SET lock_timeout = 20')
          await client.query('SELECT pg_advisory_lock(741852)')
        } finally {
          await other.end()
        }
      }),
    ),
    shape('server: the connection was ended by an administrator', 'transient', () =>
      onServer(client => client.query('SELECT pg_terminate_backend(pg_backend_pid())')),
    ),
    shape('server: a read-only transaction', 'transient', () =>
      onServer(client => client.query('BEGIN READ ONLY; CREATE TABLE nothing ()')),
    ),
    shape('server: a transaction that had failed', 'transient', () =>
      onServer(async client => {
        await client.query('BEGIN')
        await client.query('SELECT 1 / 0').catch(() => {})
        await client.query('SELECT 1')
      }),
    ),
    shape('server: no such database', 'permanent', () =>
      onServer(async (_, url) => {
        const elsewhere = new URL(url)
        elsewhere.pathname = '/no_such_database_here'
        await new pg.Client(elsewhere.href).connect()
      }),
    ),
    shape('server: a statement prepared before the table changed', 'transient', () =>
      onServer(async client => {
        await client.query('CREATE TEMPORARY TABLE t (a int)')
        await client.query({ name: 'all', text: 'SELECT * FROM t' })
        await client.query('ALTER TABLE t ADD COLUMN b int')
        await client.query({ name: 'all', text: 'SELECT * FROM t' })
      }),
    ),
    shape('too many connections', 'system', () => state('53300', 'sorry, too many clients already')),
    shape('a full disk', 'system', () => state('53100', 'could not extend file: No space left on device')),
    shape('out of memory', 'system', () => state('53200', 'out of memory')),
    shape('deadlock', 'transient', () => state('40P01', 'deadlock detected')),
    shape('starting up', 'transient', () => state('57P03', 'the database system is starting up')),
    shape('shutting down', 'transient', () => state('57P01', 'terminating connection due to administrator command')),
    shape('the database was dropped', 'permanent', () => state('57P04', 'database was dropped')),
    shape('wrong password', 'authentication', () => state('28P01', 'password authentication failed for user "a"')),
    shape('no entry in pg_hba.conf', 'authentication', () =>
      state('28000', 'no pg_hba.conf entry for host "10.0.0.1"'),
    ),
    shape('not allowed', 'authentication', () => state('42501', 'permission denied for table a')),
    shape('a damaged index', 'system', () => state('XX002', 'index "a_pkey" contains unexpected zero page at block 3')),
    shape('a prepared statement of another session', 'transient', () =>
      state('42P05', 'prepared statement "s1" already exists'),
    ),
    shape('a cursor that was closed', 'permanent', () => state('34000', 'cursor "c" does not exist')),
    shape('another server could not be reached', 'network', () => state('08001', 'could not connect to server "b"')),
    shape('a foreign server in trouble', 'network', () => state('HV00N', 'could not connect to server "b"')),

    shape('pg: a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => new pg.Client({ host: '127.0.0.1', port }).connect())
    }),
    shape('pg: hung up', 'network', () =>
      withSocketServer(
        socket => socket.once('data', () => socket.destroy()),
        port => caught(() => new pg.Client({ host: '127.0.0.1', port, user: 'a' }).connect()),
      ),
    ),
    shape('pg: no connection in time', 'transient', () =>
      withSocketServer(
        () => {},
        port =>
          caught(() => new pg.Client({ host: '127.0.0.1', port, user: 'a', connectionTimeoutMillis: 30 }).connect()),
      ),
    ),
    shape('pg: no connection of the pool in time', 'network', () =>
      withSocketServer(
        () => {},
        async port => {
          const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'a', connectionTimeoutMillis: 30 })
          pool.on('error', () => {})
          return caught(() => pool.query('SELECT 1'))
        },
      ),
    ),
    shape('pg: a server without TLS', 'permanent', () =>
      withSocketServer(
        socket => socket.once('data', () => socket.write('N')),
        port => caught(() => new pg.Client({ host: '127.0.0.1', port, user: 'a', ssl: true }).connect()),
      ),
    ),
    shape('pg: no password where one is wanted', 'authentication', () =>
      like('Error', 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
    ),
    shape('pg: used after it broke', 'network', () =>
      like('Error', 'Client has encountered a connection error and is not queryable'),
    ),
    shape('postgres.js: hung up', 'network', () =>
      like('Error', 'write CONNECTION_CLOSED 127.0.0.1:5432', {
        code: 'CONNECTION_CLOSED',
        errno: 'CONNECTION_CLOSED',
      }),
    ),
    shape('postgres.js: no connection in time', 'network', () =>
      like('Error', 'write CONNECT_TIMEOUT 127.0.0.1:5432', { code: 'CONNECT_TIMEOUT', errno: 'CONNECT_TIMEOUT' }),
    ),
    shape('postgres.js: a value twice', 'permanent', () =>
      like('PostgresError', 'duplicate key value violates unique constraint "a_pkey"', { code: '23505' }),
    ),
  ],
}
