// The names of things in Redis: one stream for each queue and priority. Eleven streams and not three bands, because a
// priority is a promise: 7 goes before 6. An empty stream costs Redis about a kilobyte and a look into it a microsecond.
import { PRIORITY } from '../../domain/job.js'

export interface Stream {
  readonly key: string
  readonly queue: string
  readonly priority: number
}

/** The consumer group of all workers. */
export const GROUP = 'redrive'

/** The consumer that nobody is: what was given back waits in its name, at its old place in line. */
export const PARKED = 'parked'

export const PRIORITIES: readonly number[] = Array.from(
  { length: PRIORITY.highest - PRIORITY.lowest + 1 },
  (_, index) => PRIORITY.highest - index,
)

export const streamKey = (prefix: string, queue: string, priority: number): string => `${prefix}${queue}:${priority}`

/** All streams of a queue, highest priority first. */
export const streamsOf = (prefix: string, queue: string): Stream[] =>
  PRIORITIES.map(priority => ({ key: streamKey(prefix, queue, priority), queue, priority }))

/** Streams of several queues as one line: by priority, and the queues take turns in being first. */
export function inLine(lines: readonly (readonly Stream[])[], turn: number): Stream[] {
  const first = lines.length === 0 ? 0 : turn % lines.length
  const turned = [...lines.slice(first), ...lines.slice(0, first)]
  return PRIORITIES.flatMap((_, rank) => turned.flatMap(streams => streams[rank] ?? []))
}
