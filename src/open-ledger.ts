// The ledger without a Redrive around it, for what has to work before there is a server to ask: migrating, the first token,
// the doctor. Opened as the environment says, used once, closed.
import type { Clock } from './domain/clock.js'
import { RedriveError } from './domain/errors.js'
import type { Database } from './ledger/database.js'
import { migrate, pendingMigrations } from './ledger/migrate.js'
import { openDatabase } from './ledger/open.js'
import { type Diagnosis, examine } from './operator/doctor.js'
import { type Tokens, tokens } from './operator/tokens.js'
import { databaseOf, readSettings } from './settings.js'

export { notOpened } from './operator/doctor.js'

export interface Ledger {
  /** `the embedded database in .redrive`, `the server of DATABASE_URL`. */
  readonly place: string
  readonly schema: string
  readonly tokens: Tokens
  /** Names of what `migrate` would apply. */
  pending(): Promise<string[]>
  /** Names of what was applied. */
  migrate(): Promise<string[]>
  examine(): Promise<Diagnosis>
  /** SCHEMA_PENDING unless the schema is there and up to date. */
  checkMigrated(): Promise<void>
}

type Environment = Readonly<Record<string, string | undefined>>

/** The folder of the embedded database; undefined where the environment names a server. */
export const embeddedFolder = (env: Environment): string | undefined =>
  databaseOf(env) === undefined ? readSettings(env).folder : undefined

/** One connection is enough, and does not crowd out those who work. */
const POOL_SIZE = 2
const STATEMENT_TIMEOUT_MS = 60_000

export async function withLedger<T>(
  { env, clock }: { env: Environment; clock: Clock },
  work: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  const { schema, folder, recoveryIntervalMs } = readSettings(env)
  const database = databaseOf(env)
  const db = await openDatabase(database, {
    schema,
    folder,
    clock,
    poolSize: POOL_SIZE,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    listen: false,
  })
  try {
    return await work({
      place: database === undefined ? `the embedded database in ${folder}` : 'the server',
      schema,
      tokens: tokens({ db, wake: () => {} }),
      pending: () => pendingMigrations(db),
      migrate: () => migrate(db),
      examine: () => examine(db, { clock, recoveryIntervalMs }),
      checkMigrated: () => checkMigrated(db),
    })
  } finally {
    await db.close()
  }
}

async function checkMigrated(db: Database): Promise<void> {
  const [pending] = await pendingMigrations(db)
  if (pending === undefined) return
  throw new RedriveError('SCHEMA_PENDING', `The schema "${db.schema}" lacks migration ${pending}`)
}
