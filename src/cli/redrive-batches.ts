// Sends a fixed set of dead letters back, batch by batch: as fast as the API takes them or as slowly as was asked for. Ctrl-C
// stops between two batches, never within one, so that what was done is known.
import { type Clock, sleep } from '../domain/clock.js'
import type { Client } from './client.js'

export interface Redriven {
  readonly redriven: readonly string[]
  readonly conflicts: readonly string[]
  readonly notOpen: readonly string[]
}

export interface BatchOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly reason: string | undefined
  /** Undefined: as fast as it goes. */
  readonly perSecond: number | undefined
  readonly onBatch: (done: number) => void
}

const BATCH = 200

export async function redriveInBatches(
  client: Client,
  ids: readonly string[],
  { clock, signal, reason, perSecond, onBatch }: BatchOptions,
): Promise<Redriven & { readonly done: number }> {
  const size = Math.min(BATCH, perSecond ?? BATCH)
  const sum = { redriven: [] as string[], conflicts: [] as string[], notOpen: [] as string[] }
  let done = 0
  while (done < ids.length && !signal.aborted) {
    const began = clock.monotonic()
    const batch = ids.slice(done, done + size)
    const answer = await client.post<Redriven>('/dead-letter-queue/retry', { ids: batch, reason }, { whole: true })
    for (const key of ['redriven', 'conflicts', 'notOpen'] as const) sum[key].push(...answer[key])
    done += batch.length
    onBatch(done)
    if (perSecond !== undefined && done < ids.length) {
      await sleep(clock, (batch.length / perSecond) * 1_000 - (clock.monotonic() - began), signal)
    }
  }
  return { ...sum, done }
}
