// Triage rules, in the order in which they are asked. Whoever changes one sets back how far the rules have looked, in the
// same transaction: letters that it did not match may match now.
import type { TriageRule, TriageRuleDraft } from '../domain/triage.js'
import { type Queryable, sql } from './database.js'
import { millis, toDate, toJson } from './rows.js'

type Rule = Required<TriageRuleDraft>

const COLUMNS = `id, name, enabled, position, match::text AS match, action::text AS action, max_per_run, max_per_letter,
  version, created_by, updated_by, ${millis('created_at')} AS created_at, ${millis('updated_at')} AS updated_at`

const ALL = sql`SELECT ${COLUMNS} FROM redrive.triage_rule ORDER BY position, id LIMIT $1::integer`

export const MOST_RULES = 100

export async function triageRules(db: Queryable): Promise<TriageRule[]> {
  return (await db.query<Row>(ALL, [MOST_RULES])).map(toRule)
}

const LOCK = sql`SELECT ${COLUMNS} FROM redrive.triage_rule WHERE name = $1 FOR UPDATE`

export async function lockTriageRule(tx: Queryable, name: string): Promise<TriageRule | undefined> {
  const [row] = await tx.query<Row>(LOCK, [name])
  return row && toRule(row)
}

const START_AGAIN = sql`UPDATE redrive.triage_progress SET died_at = NULL, seq = nextval('redrive.job_seq')`

const CREATE = sql`
  INSERT INTO redrive.triage_rule (name, enabled, position, match, action, max_per_run, max_per_letter, created_at, created_by,
    updated_at, updated_by)
  SELECT $1, $2::boolean, $3::integer, $4::json, $5::json, $6::integer, $7::smallint, now, $8, now, $8
  FROM (SELECT coalesce($9::timestamptz, now()) AS now) clock
  WHERE (SELECT count(*) FROM redrive.triage_rule) < $10::integer
  ON CONFLICT (name) DO NOTHING RETURNING ${COLUMNS}`

const ruleParams = (rule: Rule) => [
  rule.name,
  rule.enabled,
  rule.position,
  JSON.stringify(rule.match),
  JSON.stringify(rule.action),
  rule.maxPerRun,
  rule.maxPerLetter,
]

/** Undefined: there is one of that name, or there are too many. */
export async function createTriageRule(tx: Queryable, rule: Rule, actor: string): Promise<TriageRule | undefined> {
  const [row] = await tx.query<Row>(CREATE, [...ruleParams(rule), actor, tx.now(), MOST_RULES])
  await tx.query(START_AGAIN)
  return row && toRule(row)
}

const CHANGE = sql`
  UPDATE redrive.triage_rule
  SET enabled = $2::boolean, position = $3::integer, match = $4::json, action = $5::json, max_per_run = $6::integer,
      max_per_letter = $7::smallint, updated_by = $8, updated_at = coalesce($9::timestamptz, now()), version = version + 1
  WHERE name = $1 RETURNING ${COLUMNS}`

/** Its name stays. */
export async function changeTriageRule(tx: Queryable, rule: Rule, actor: string): Promise<TriageRule | undefined> {
  const [row] = await tx.query<Row>(CHANGE, [...ruleParams(rule), actor, tx.now()])
  await tx.query(START_AGAIN)
  return row && toRule(row)
}

const REMOVE = sql`DELETE FROM redrive.triage_rule WHERE name = $1`

export async function removeTriageRule(tx: Queryable, name: string): Promise<void> {
  await tx.query(REMOVE, [name])
  await tx.query(START_AGAIN)
}

interface Row {
  id: string | number
  name: string
  enabled: boolean
  position: number
  match: string
  action: string
  max_per_run: number
  max_per_letter: number
  version: number
  created_by: string
  updated_by: string
  created_at: number
  updated_at: number
}

const toRule = (row: Row): TriageRule => ({
  id: String(row.id),
  name: row.name,
  enabled: row.enabled,
  position: row.position,
  match: toJson(row.match) as TriageRule['match'],
  action: toJson(row.action) as unknown as TriageRule['action'],
  maxPerRun: row.max_per_run,
  maxPerLetter: row.max_per_letter,
  version: row.version,
  createdAt: toDate(row.created_at),
  createdBy: row.created_by,
  updatedAt: toDate(row.updated_at),
  updatedBy: row.updated_by,
})
