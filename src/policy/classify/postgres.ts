// Postgres, by SQLSTATE: single codes first, then the class (the first two characters).
import type { Kind } from '../../domain/failure.js'
import { textProp } from '../read.js'
import type { Source } from './evidence.js'

const CODES: Readonly<Record<string, readonly [Kind, string]>> = {
  '23502': ['validation', 'a required column is null'],
  '23514': ['validation', 'a check constraint does not hold'],
  '25006': ['transient', 'read-only transaction, as on a replica during failover'],
  '25P02': ['transient', 'the transaction had already failed'],
  '25P03': ['transient', 'idle in transaction for too long'],
  '26000': ['transient', 'prepared statement gone, as behind a pooler'],
  '42501': ['authentication', 'insufficient privilege'],
}

const CLASSES: Readonly<Record<string, readonly [Kind, string]>> = {
  '08': ['network', 'connection'],
  '0A': ['permanent', 'feature not supported'],
  '21': ['permanent', 'cardinality'],
  '22': ['validation', 'data does not fit'],
  '23': ['permanent', 'integrity constraint'],
  '25': ['permanent', 'transaction state'],
  '26': ['permanent', 'statement name'],
  '28': ['authentication', 'not authorised'],
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
  P0: ['permanent', 'raised by a function'],
  XX: ['system', 'internal error'],
}

/** Fields that only a server's error carries: five characters alone could be anyone's code. */
const MARKS = ['severity', 'routine', 'severity_local']

export const postgres: Source = ({ error, type, code }) => {
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return undefined
  if (type !== 'PostgresError' && !MARKS.some(mark => textProp(error, mark) !== undefined)) return undefined
  const found = CODES[code] ?? CLASSES[code.slice(0, 2)]
  return found && { kind: found[0], because: `Postgres SQLSTATE ${code} (${found[1]})` }
}
