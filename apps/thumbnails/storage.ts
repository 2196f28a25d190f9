// Where media comes from and thumbnails go: the port. An object is read in ranges and never held whole in memory; it is
// written whole or not at all. Implementations throw errors that say their kind, in words for people:
// not there → permanent, not allowed → authentication, no answer → network.
import type { Readable } from 'node:stream'

/** So much of an object is read when it is opened: enough to know its type, and all there is of a small one. */
export const HEAD_BYTES = 64 * 1024

/** The service of the breaker: failures of storage are its failures, whatever job met them. */
export const STORAGE_SERVICE = 's3'

export interface Storage {
  /** For messages and logs, without secrets: `s3://bucket`, `the folder media`. */
  readonly name: string
  /** Opens one version of an object: what is read later belongs to it, or fails. */
  open(key: string, signal: AbortSignal): Promise<StoredObject>
  /** Visible under its key only when it is complete; a failure leaves what was there before. */
  write(key: string, body: Uint8Array | Readable, options: WriteOptions): Promise<void>
  /** Throws when it cannot be used as it is set up. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface StoredObject {
  readonly key: string
  readonly size: number
  /** Its first bytes: all of them, or `HEAD_BYTES`. */
  readonly head: Uint8Array
  /** The bytes from `start` up to before `end`. */
  read(start: number, end: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  close(): Promise<void>
}

export interface WriteOptions {
  readonly contentType: string
  readonly signal?: AbortSignal
}
