// The doctor: looks at the database, the ledger and whoever works on it, and says what is wrong and what to do. It changes
// nothing, and what cannot be looked at is said to be so.
import type { Clock } from '../domain/clock.js'
import { isRedriveError } from '../domain/errors.js'
import { breakers } from '../ledger/breaker.js'
import type { Database } from '../ledger/database.js'
import { liveTable, type ServerState, serverState } from '../ledger/doctor.js'
import { readLines } from '../ledger/health.js'
import { pendingMigrations } from '../ledger/migrate.js'
import { queueSettings } from '../ledger/queue.js'
import { counted } from '../policy/say.js'
import {
  breakerFindings,
  clockFinding,
  connectionsFinding,
  DOCTOR_CHECKS,
  type DoctorCheck,
  type Finding,
  fine,
  pausedFindings,
  problem,
  recoveryFindings,
  skipped,
  transactionFindings,
  vacuumFinding,
  workerFindings,
} from './doctor-findings.js'

export type { DoctorCheck, Finding } from './doctor-findings.js'

export interface Diagnosis {
  /** Nothing was found, and everything could be looked at. */
  readonly well: boolean
  readonly findings: readonly Finding[]
}

export interface DoctorOptions {
  readonly clock: Clock
  /** How often recovery is due. */
  readonly recoveryIntervalMs: number
  /** Transactions that are open for longer are told of. */
  readonly longTransactionMs?: number
}

const LONG_TRANSACTION_MS = 300_000

export async function examine(db: Database, options: DoctorOptions): Promise<Diagnosis> {
  const findings: Finding[] = []
  try {
    findings.push(...(await examineServer(db, options)))
    const schema = await examineSchema(db)
    findings.push(schema)
    if (schema.status === 'ok') findings.push(...(await examineLedger(db, options)))
  } catch (error) {
    findings.push(failed('database', error))
  }
  return diagnosis(findings)
}

/** Of a database that could not even be opened. */
export const notOpened = (error: unknown): Diagnosis => diagnosis([failed('database', error)])

function diagnosis(findings: readonly Finding[]): Diagnosis {
  const looked = new Set(findings.map(({ check }) => check))
  const missing = DOCTOR_CHECKS.filter(check => !looked.has(check))
  const all = [...findings, ...missing.map(check => skipped(check, 'Not looked at, because of the problem above.'))]
  const place = ({ check }: Finding) => DOCTOR_CHECKS.indexOf(check)
  return { well: all.every(({ status }) => status === 'ok'), findings: all.sort((a, b) => place(a) - place(b)) }
}

async function examineServer(db: Database, { clock, longTransactionMs }: DoctorOptions): Promise<Finding[]> {
  const asked = clock.monotonic()
  const server = await serverState(db, longTransactionMs ?? LONG_TRANSACTION_MS)
  const tookMs = clock.monotonic() - asked
  const kind = db.kind === 'embedded' ? 'The embedded database' : 'The server'
  const answers = fine('database', `${kind} answers: Postgres ${server.version}, schema ${db.schema}.`)
  if (db.kind === 'embedded') {
    const alone = 'Embedded: this process has it to itself.'
    const none = (['connections', 'transactions', 'clock'] as const).map(check => fine(check, alone))
    return [answers, ...none, await examineTable(db, server)]
  }
  return [
    answers,
    clockFinding(clock.now() - server.now - tookMs / 2, tookMs / 2),
    connectionsFinding(server),
    ...transactionFindings(server),
    await examineTable(db, server),
  ]
}

async function examineTable(db: Database, server: ServerState): Promise<Finding> {
  return vacuumFinding(server, await liveTable(db))
}

async function examineSchema(db: Database): Promise<Finding> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return fine('migrations', 'The schema is up to date.')
    const message = `${counted(pending.length, 'migration')} not applied: ${pending.slice(0, 20).join(', ')}.`
    return problem('migrations', message, 'Run `redrive migrate`; running processes go on.')
  } catch (error) {
    return failed(isRedriveError(error, 'DATABASE_TOO_OLD') ? 'database' : 'migrations', error)
  }
}

async function examineLedger(db: Database, { recoveryIntervalMs }: DoctorOptions): Promise<Finding[]> {
  const [lines, { breakers: known, readAt }] = await Promise.all([readLines(db), breakers(db)])
  const paused = [...new Set(lines.lanes.filter(lane => lane.paused).map(({ queue }) => queue))]
  const settings = paused.length === 0 ? [] : await queueSettings(db, paused)
  return [
    ...workerFindings(lines),
    ...pausedFindings(lines, settings, lines.now),
    ...recoveryFindings(lines, recoveryIntervalMs),
    ...breakerFindings(known.map(breaker => ({ ...breaker, sinceMs: readAt - breaker.since }))),
  ]
}

const ADVICE: Readonly<Record<string, string>> = {
  DATABASE_UNREACHABLE: 'Check DATABASE_URL (address, role, password, name) and that the server runs.',
  DATABASE_TOO_OLD: 'Upgrade the server to Postgres 14 or newer.',
  SCHEMA_NEWER: 'Upgrade this redrive: a newer one has migrated the database.',
  SCHEMA_CHANGED: 'Install the released package again: its migrations are not as they were.',
  LEDGER_LOCKED: 'Ask the process that has it open: set REDRIVE_URL and REDRIVE_TOKEN.',
  SETTING_INVALID: 'Mend the setting.',
}

function failed(check: DoctorCheck, error: unknown): Finding {
  const { message = String(error) } = error as Error
  const advice = isRedriveError(error) ? ADVICE[error.code] : undefined
  return problem(check, message, advice ?? 'Look at the log of the server, then ask again.')
}
