// An answer for whoever may not see payloads: data of others is redacted by names and looks, every other text by its looks.
import type { Json } from '../domain/json.js'
import { redactJson, redactText } from '../policy/redact.js'

/** Fields that hold what handlers were given, gave, or left in the audit. */
const FOREIGN = new Set(['payload', 'result', 'progress', 'before', 'after'])
/** Ours, and of use only when whole. */
const WHOLE = new Set(['id', 'nextCursor', 'fingerprint', 'group', 'jobId'])

/** `value`: as JSON has it, so that a Date is a text. */
export function redacted(value: Json): Json {
  if (typeof value === 'string') return redactText(value)
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(redacted)
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (WHOLE.has(name)) return [name, inner]
      return [name, FOREIGN.has(name) ? redactJson(inner) : redacted(inner)]
    }),
  )
}
