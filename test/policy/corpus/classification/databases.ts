// Query builders and other databases: Prisma, Sequelize, TypeORM, Drizzle, MySQL, MongoDB, SQLite.
import { type Family, like, shape } from './shape.js'

const unique = like('error', 'duplicate key value violates unique constraint "users_email_key"', {
  code: '23505',
  severity: 'ERROR',
  routine: '_bt_check_unique',
})
const refused = () => like('Error', 'connect ECONNREFUSED 127.0.0.1:5432', { code: 'ECONNREFUSED' })

const prisma = (code: string, message: string) =>
  like('PrismaClientKnownRequestError', message, { code, clientVersion: '6.0.0', meta: {} })

export const databases: Family = {
  family: 'query builders and other databases',
  shapes: [
    shape('Prisma: a value twice', 'permanent', () =>
      prisma('P2002', 'Unique constraint failed on the fields: (`email`)'),
    ),
    shape('Prisma: no such record', 'permanent', () =>
      prisma(
        'P2025',
        'An operation failed because it depends on one or more records that were required but not found.',
      ),
    ),
    shape('Prisma: a reference to nothing', 'permanent', () => prisma('P2003', 'Foreign key constraint failed')),
    shape('Prisma: a required column', 'validation', () => prisma('P2011', 'Null constraint violation on the fields')),
    shape('Prisma: too long', 'validation', () =>
      prisma('P2000', "The provided value for the column is too long for the column's type."),
    ),
    shape('Prisma: pool used up', 'transient', () =>
      prisma('P2024', 'Timed out fetching a new connection from the connection pool.'),
    ),
    shape('Prisma: deadlock', 'transient', () =>
      prisma('P2034', 'Transaction failed due to a write conflict or a deadlock. Please retry your transaction'),
    ),
    shape('Prisma: transaction over its time', 'transient', () =>
      prisma('P2028', 'Transaction API error: Transaction already closed'),
    ),
    shape('Prisma: connection closed', 'network', () => prisma('P1017', 'Server has closed the connection.')),
    shape('Prisma: no connection', 'network', () =>
      like('PrismaClientInitializationError', "Can't reach database server at `db:5432`", { errorCode: 'P1001' }),
    ),
    shape('Prisma: wrong password', 'authentication', () =>
      like('PrismaClientInitializationError', 'Authentication failed against database server', { errorCode: 'P1000' }),
    ),
    shape('Prisma: a query that is none', 'validation', () =>
      like('PrismaClientValidationError', 'Argument `where` is missing.'),
    ),
    shape('Prisma: the engine died', 'system', () =>
      like('PrismaClientRustPanicError', 'PANIC: called `Option::unwrap()` on a `None` value'),
    ),
    shape('Sequelize: a value twice', 'permanent', () =>
      like('SequelizeUniqueConstraintError', 'Validation error', {
        parent: unique,
        original: unique,
        errors: [{ message: 'email must be unique', type: 'unique violation' }],
      }),
    ),
    shape('Sequelize: does not fit', 'validation', () =>
      like('SequelizeValidationError', 'notNull Violation: User.name cannot be null', {
        errors: [{ type: 'notNull' }],
      }),
    ),
    shape('Sequelize: no connection', 'network', () =>
      like('SequelizeConnectionRefusedError', 'connect ECONNREFUSED 127.0.0.1:5432', {
        parent: refused(),
        original: refused(),
      }),
    ),
    shape('Sequelize: pool used up', 'transient', () =>
      like('SequelizeConnectionAcquireTimeoutError', 'Operation timeout'),
    ),
    shape('TypeORM: a value twice', 'permanent', () =>
      like('QueryFailedError', unique.message, { query: 'INSERT …', parameters: [], driverError: unique }),
    ),
    shape('Drizzle: a value twice', 'permanent', () =>
      Object.assign(like('DrizzleQueryError', 'Failed query: insert into "users"', { query: '…' }), { cause: unique }),
    ),
    shape('Knex: pool used up', 'transient', () =>
      like('KnexTimeoutError', 'Knex: Timeout acquiring a connection. The pool is probably full.'),
    ),
    shape('MySQL: deadlock', 'transient', () =>
      like('Error', 'Deadlock found when trying to get lock; try restarting transaction', {
        code: 'ER_LOCK_DEADLOCK',
        errno: 1213,
        sqlState: '40001',
      }),
    ),
    shape('MySQL: lock wait', 'transient', () =>
      like('Error', 'Lock wait timeout exceeded; try restarting transaction', {
        code: 'ER_LOCK_WAIT_TIMEOUT',
        errno: 1205,
        sqlState: 'HY000',
      }),
    ),
    shape('MySQL: a value twice', 'permanent', () =>
      like('Error', "Duplicate entry 'a' for key 'PRIMARY'", { code: 'ER_DUP_ENTRY', errno: 1062, sqlState: '23000' }),
    ),
    shape('MySQL: wrong password', 'authentication', () =>
      like('Error', "Access denied for user 'a'@'localhost' (using password: YES)", {
        code: 'ER_ACCESS_DENIED_ERROR',
        errno: 1045,
        sqlState: '28000',
      }),
    ),
    shape('MySQL: too many connections', 'system', () =>
      like('Error', 'Too many connections', { code: 'ER_CON_COUNT_ERROR', errno: 1040, sqlState: '08004' }),
    ),
    shape('MySQL: the server hung up', 'network', () =>
      like('Error', 'Connection lost: The server closed the connection.', { code: 'PROTOCOL_CONNECTION_LOST' }),
    ),
    shape('MySQL: gone away', 'network', () => like('Error', 'MySQL server has gone away', { errno: 2006 })),
    shape('MySQL: no such table', 'permanent', () =>
      like('Error', "Table 'a.b' doesn't exist", { code: 'ER_NO_SUCH_TABLE', errno: 1146, sqlState: '42S02' }),
    ),
    shape('MongoDB: a value twice', 'permanent', () =>
      like('MongoServerError', 'E11000 duplicate key error collection: a.b index: email_1 dup key', { code: 11000 }),
    ),
    shape('MongoDB: write conflict', 'transient', () =>
      like('MongoServerError', 'WriteConflict error: this operation conflicted with another operation.', {
        code: 112,
        errorLabelSet: new Set(['TransientTransactionError']),
      }),
    ),
    shape('MongoDB: no server', 'network', () =>
      like('MongoServerSelectionError', 'connect ECONNREFUSED 127.0.0.1:27017', { reason: { type: 'Unknown' } }),
    ),
    shape('MongoDB: connection lost', 'network', () =>
      like('MongoNetworkError', 'connection 3 to 127.0.0.1:27017 closed'),
    ),
    shape('MongoDB: wrong password', 'authentication', () =>
      like('MongoServerError', 'Authentication failed.', { code: 18, codeName: 'AuthenticationFailed' }),
    ),
    shape('Mongoose: does not fit', 'validation', () =>
      like('ValidationError', 'User validation failed: name: Path `name` is required.', {
        errors: { name: { kind: 'required', path: 'name' } },
      }),
    ),
    shape('SQLite: locked', 'transient', () => like('SqliteError', 'database is locked', { code: 'SQLITE_BUSY' })),
    shape('SQLite: a value twice', 'permanent', () =>
      like('SqliteError', 'UNIQUE constraint failed: users.email', { code: 'SQLITE_CONSTRAINT_UNIQUE' }),
    ),
    shape('SQLite: full', 'system', () => like('SqliteError', 'database or disk is full', { code: 'SQLITE_FULL' })),
  ],
}
