// The parts that stories are made of: labelled lines, sections, JSON and stacks.
import { printable } from '../../domain/printable.js'
import type { Style } from '../style.js'
import { padEnd, printableJson, printableLines, widthOf } from '../text.js'

export type Field = readonly [label: string, value: string | number | undefined]

/** `  label  value`, those without a value left out. A value of several lines stays below itself. */
export function fields(all: readonly Field[], style: Style): string[] {
  const given = all.flatMap(([label, value]) => (value === undefined || value === '' ? [] : [{ label, value }]))
  const width = Math.max(0, ...given.map(({ label }) => widthOf(label)))
  return given.flatMap(({ label, value }) => {
    const [first = '', ...rest] = printableLines(String(value))
    const indent = ' '.repeat(width + 4)
    return [`  ${style.dim(padEnd(label, width))}  ${first}`, ...rest.map(line => `${indent}${line}`)]
  })
}

export const title = (text: string, style: Style): string => style.bold(printable(text))

export const section = (name: string, lines: readonly string[], style: Style): string[] =>
  lines.length === 0 ? [] : ['', style.bold(name), ...lines]

export const indented = (lines: readonly string[]): string[] => lines.map(line => (line === '' ? '' : `  ${line}`))

export const jsonLines = (value: unknown): string[] =>
  value === undefined ? [] : indented(printableJson(value, 2).split('\n'))

export const stackLines = (stack: string | undefined): string[] =>
  stack === undefined ? [] : indented(printableLines(stack))
