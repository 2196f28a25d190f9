// Postgres, by SQLSTATE: single codes first, then the class (the first two characters).
import type { Kind } from '../../domain/failure.js'
import { textProp } from '../read.js'
import { byWord, type Source } from './evidence.js'

const CODES: Readonly<Record<string, readonly [Kind, string]>> = {
  '23502': ['validation', 'a required column is null'],
  '23514': ['validation', 'a check constraint does not hold'],
  '25006': ['transient', 'read-only transaction, as on a replica during failover'],
  '25P02': ['transient', 'the transaction had already failed'],
  '25P03': ['transient', 'idle in transaction for too long'],
  '26000': ['transient', 'prepared statement gone, as behind a pooler'],
  '42501': ['authentication', 'insufficient privilege'],
  '42P05': ['transient', 'prepared statement of another session, as behind a pooler'],
  '57P04': ['permanent', 'the database was dropped'],
  HV00N: ['network', 'a foreign server cannot be reached'],
}

const CLASSES: Readonly<Record<string, readonly [Kind, string]>> = {
  '08': ['network', 'connection'],
  '0A': ['permanent', 'feature not supported'],
  '0L': ['authentication', 'grantor'],
  '0P': ['authentication', 'role'],
  '21': ['permanent', 'cardinality'],
  '22': ['validation', 'data does not fit'],
  '23': ['permanent', 'integrity constraint'],
  '24': ['permanent', 'cursor state'],
  '25': ['permanent', 'transaction state'],
  '26': ['permanent', 'statement name'],
  '28': ['authentication', 'not authorised'],
  '2F': ['permanent', 'function'],
  '34': ['permanent', 'no such cursor'],
  '38': ['permanent', 'external function'],
  '39': ['permanent', 'external function'],
  '3D': ['permanent', 'no such database'],
  '3F': ['permanent', 'no such schema'],
  '40': ['transient', 'transaction rolled back'],
  '42': ['permanent', 'wrong or forbidden SQL'],
  '44': ['validation', 'view check'],
  '53': ['system', 'out of resources'],
  '54': ['permanent', 'a limit of Postgres'],
  '55': ['transient', 'object in use or locked'],
  '57': ['transient', 'server stopped, starting, or statement cancelled'],
  '58': ['system', 'trouble under Postgres'],
  F0: ['system', 'server configuration'],
  HV: ['permanent', 'foreign data'],
  P0: ['permanent', 'raised by a function'],
  XX: ['system', 'internal error'],
}

/** Fields that only a server's error carries: five characters alone could be anyone's code. */
const MARKS = ['severity', 'routine', 'severity_local']

/** What postgres.js and node-postgres say about a connection themselves. */
const CLIENT_CODES = byWord({
  network: 'CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED CONNECTION_CONNECT_TIMEOUT CONNECT_TIMEOUT',
})

export const postgres: Source = ({ error, type, code, message }) => {
  const client = code === undefined ? undefined : CLIENT_CODES.get(code)
  if (client) return { kind: client, because: `Postgres client code ${code}` }
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return undefined
  if (type !== 'PostgresError' && !MARKS.some(mark => textProp(error, mark) !== undefined)) return undefined
  // The table changed under a prepared statement: a new connection, or a new plan, heals it.
  if (code === '0A000' && message.startsWith('cached plan'))
    return { kind: 'transient', because: 'Postgres SQLSTATE 0A000 (a plan made before the table changed)' }
  const found = CODES[code] ?? CLASSES[code.slice(0, 2)]
  return found && { kind: found[0], because: `Postgres SQLSTATE ${code} (${found[1]})` }
}
