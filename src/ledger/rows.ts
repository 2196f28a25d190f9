// Between rows and values, the same for every driver: times travel as milliseconds, JSON as text, counts as numbers.
import type { Json } from '../domain/json.js'

/** SQL that reads a timestamp as milliseconds since 1970. */
export const millis = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::double precision`

/** `{ key: value }`, or nothing when the column is null. */
export function optional<Key extends string, Value>(key: Key, value: Value | null | undefined): { [K in Key]?: Value } {
  return value === null || value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value })
}

export const toDate = (value: number): Date => new Date(value)

export const toJson = (text: string | null): Json => (text === null ? null : (JSON.parse(text) as Json))

/** bigint columns come as text, number or bigint, depending on the driver. */
export const toNumber = (value: unknown): number => Number(value ?? 0)
