// The live summary as text: a table for a terminal, one line for a log. Pure.
import { printable } from '../domain/printable.js'
import { countOf, type LedgerState } from './ledger-state.js'
import type { News } from './news.js'

export interface Moment {
  readonly state: LedgerState
  readonly news: News
  /** Jobs completed a second, lately. */
  readonly perSecond: number
  /** Set while the ledger does not answer: the state shown is an old one. */
  readonly trouble: string | undefined
}

const COLUMNS = ['waiting', 'active', 'retrying', 'scheduled', 'completed', 'dead'] as const
const WIDTH = 11
const MOST_QUEUES = 12

export interface Style {
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
  readonly red: (text: string) => string
}

export const plain: Style = { dim: text => text, bold: text => text, red: text => text }

export const coloured: Style = {
  dim: text => `\u001b[2m${text}\u001b[22m`,
  bold: text => `\u001b[1m${text}\u001b[22m`,
  red: text => `\u001b[31m${text}\u001b[39m`,
}

/** Lines of at most `columns` characters. */
export function table({ state, news, perSecond, trouble }: Moment, columns: number, style: Style): string[] {
  const queues = state.queues.slice(0, MOST_QUEUES)
  const hidden = state.queues.length - queues.length
  const labels = queues.map(({ queue, paused }) => cut(printable(queue), 30) + (paused ? ' (paused)' : ''))
  const labelWidth = Math.max(8, ...labels.map(label => label.length))
  const row = (label: string, cell: (column: (typeof COLUMNS)[number]) => string | number) =>
    cut(label.padEnd(labelWidth) + COLUMNS.map(column => String(cell(column)).padStart(WIDTH)).join(''), columns)
  return [
    style.dim(row('queue', column => column)),
    ...queues.map((queue, index) => row(labels[index] ?? '', column => queue[column])),
    ...(hidden > 0 ? [style.dim(cut(`and ${hidden} more`, columns))] : []),
    style.bold(row('all', column => countOf(state, column))),
    cut(`${perSecond.toFixed(1)} completed a second`, columns),
    ...(trouble === undefined ? [] : [style.red(cut(`the ledger does not answer: ${printable(trouble)}`, columns))]),
    '',
    ...news.latest.map(text => style.dim(cut(printable(text), columns))),
  ]
}

/** Everything in one line, for a log. */
export function line({ state, news, perSecond, trouble }: Moment, time: Date): string {
  const counts = COLUMNS.map(name => `${name} ${countOf(state, name)}`).join(', ')
  const last = news.latest.at(-1)
  const parts = [counts, `${perSecond.toFixed(1)}/s`]
  if (trouble !== undefined) parts.push(`the ledger does not answer: ${trouble}`)
  else if (last !== undefined) parts.push(`last: ${last}`)
  return `${time.toTimeString().slice(0, 8)} ${printable(parts.join(' | '))}`
}

const cut = (text: string, columns: number): string =>
  text.length <= columns ? text : `${text.slice(0, columns - 1)}…`
