// A log line for a person at a terminal: time, level, words, and the fields behind them. Nothing in it is obeyed by the terminal.
import { printable } from '../domain/printable.js'

export function shortLine(json: string): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>
  const clock = String(time).slice(11, 19)
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${said(value)}`)
  const line = [`${clock} ${String(level).padEnd(5)} ${String(msg ?? '')}`, ...rest].join(' ')
  return `${printable(line)}\n`
}

function said(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}
