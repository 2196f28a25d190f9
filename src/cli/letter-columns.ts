// Dead letters as rows.
import type { DeadLetterBrief } from './answers.js'
import type { Column } from './table.js'
import { ago } from './time.js'

/** `status`: the one that all of them have, or `all`. */
export const letterColumns = (now: number, status: string): readonly Column<DeadLetterBrief>[] => [
  { title: 'ID', value: letter => letter.id, whole: true },
  ...(status === 'all' ? [{ title: 'STATUS', value: (letter: DeadLetterBrief) => letter.status }] : []),
  { title: 'DIED', value: letter => `${ago(letter.diedAt, now)} ago` },
  { title: 'QUEUE', value: letter => letter.queue, long: true },
  { title: 'KIND', value: letter => letter.kind, spare: true },
  { title: 'JOB', value: letter => letter.name, long: true, spare: true },
  { title: 'TRIES', value: letter => letter.totalAttempts, right: true, spare: true },
  { title: 'ERROR', value: letter => letter.message, long: true, paint: (_, style) => style.red },
]
