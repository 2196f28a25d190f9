// Attempts as a table: what was tried, how it ended, what was decided.
import type { Attempt } from '../answers.js'
import type { Column } from '../table.js'
import { ago, duration } from '../time.js'

export const attemptColumns = (now: number): readonly Column<Attempt>[] => [
  { title: '#', value: ({ number }) => number, right: true },
  { title: 'ENDED', value: ({ finishedAt }) => `${ago(finishedAt, now)} ago` },
  { title: 'TOOK', value: tookOf, right: true },
  { title: 'OUTCOME', value: ({ outcome }) => outcome },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'THEN', value: thenOf },
  { title: 'ERROR', value: ({ message, reason }) => message ?? reason, long: true },
]

const tookOf = ({ startedAt, finishedAt }: Attempt): string | undefined =>
  startedAt === undefined ? undefined : duration(Date.parse(finishedAt) - Date.parse(startedAt))

const thenOf = ({ decision, delayMs }: Attempt): string =>
  !delayMs ? decision : `${decision} after ${duration(delayMs)}`
