// Text for a terminal, of several lines, as JSON, and by columns: what takes two columns counts as two.
import stringWidth from 'string-width'
import { OBEYED, printable } from '../domain/printable.js'

/** Several lines, as of a stack. */
export const printableLines = (text: string): string[] =>
  text.split(/\r\n|[\n\r]/).map(line => printable(line.replaceAll('\t', '  ')))

/** JSON that means the same, with nothing in it that a terminal would obey. */
export const printableJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value ?? null, null, indent).replace(OBEYED, found => (found === '\n' ? found : escaped(found)))

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, index) => `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`).join(
    '',
  )

export const widthOf = (text: string): number => stringWidth(text)

const segmenter = new Intl.Segmenter()

/** At most so many columns; what is cut ends with … */
export function cut(text: string, columns: number): string {
  // No character takes more columns than it has code units, nearly: most texts need no count.
  if (text.length * 2 <= columns || widthOf(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const { segment } of segmenter.segment(text)) {
    width += widthOf(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

export const padEnd = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - widthOf(text)))
export const padStart = (text: string, columns: number): string =>
  ' '.repeat(Math.max(0, columns - widthOf(text))) + text
