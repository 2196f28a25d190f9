// The ledger's schema can have any plain name. Statements are written for `redrive`, so that they can be pasted
// into psql; here the configured name is put in its place, once for each statement.
import { invalid } from '../domain/errors.js'
import type { Statement } from './database.js'

export const DEFAULT_SCHEMA = 'redrive'

const PLAIN_NAME = /^[a-z_][a-z0-9_]{0,39}$/
const QUALIFIER = /\bredrive\./g
// In places where the name itself is a value.
const LITERAL = /\bredrive_schema_name\b/g

export function checkSchemaName(name: string): string {
  if (!PLAIN_NAME.test(name) || name.startsWith('pg_')) {
    throw invalid(
      'The schema name (REDRIVE_SCHEMA)',
      name,
      'a-z, 0-9 and _, not starting with a digit or pg_, at most 40',
    )
  }
  return name
}

export const inSchema = (text: string, schema: string): string =>
  text.replace(QUALIFIER, `"${schema}".`).replace(LITERAL, schema)

/** Renders each constant statement once. INVARIANT: a name that is not plain comes near no SQL (invariant 9). */
export function statementTexts(schema: string): (statement: Statement) => string {
  checkSchemaName(schema)
  const texts = new WeakMap<Statement, string>()
  return statement => {
    let text = texts.get(statement)
    if (text === undefined) {
      text = inSchema(statement.text, schema)
      texts.set(statement, text)
    }
    return text
  }
}
