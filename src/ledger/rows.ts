// Between rows and values, the same for every driver: times travel as milliseconds, JSON as text, counts as numbers.
import type { Json } from '../domain/json.js'

/** SQL that reads a timestamp as milliseconds since 1970. */
// date_part, not extract: the latter works in numeric, which costs a microsecond a value.
export const millis = (column: string): string => `date_part('epoch', ${column}) * 1000`

/** SQL that reads, as text, a payload that lies apart (0017_payloads_apart.sql). `row`: a job, a dead letter or a finished job. */
export const payloadApart = (row: string): string => `(SELECT p.body FROM redrive.payload p WHERE p.id = ${row}.id)`

/** The same, wherever it lies. */
export const payloadOf = (row: string): string => `coalesce(${row}.payload::text, ${payloadApart(row)})`

/** `{ key: value }`, or nothing when the column is null. */
export function optional<Key extends string, Value>(key: Key, value: Value | null | undefined): { [K in Key]?: Value } {
  return value === null || value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value })
}

export const toDate = (value: number): Date => new Date(value)

export const toJson = (text: string | null): Json => (text === null ? null : (JSON.parse(text) as Json))

/** Numbers and UUIDs as an array that every driver can carry: a text. */
export const listOf = (values: readonly string[]): string => `{${values.join(',')}}`

/** bigint columns come as text, number or bigint, depending on the driver. */
export const toNumber = (value: unknown): number => Number(value ?? 0)
