// Text for a terminal. Names, payloads and errors come from anywhere: what a terminal would obey never gets there
// (invariant 9), and what takes two columns counts as two.
import stringWidth from 'string-width'

/**
 * Controls, line separators and formatting that hides or turns text; the joiners of emoji and of some scripts stay. Of the
 * block of invisible tags all goes, also what has no meaning yet.
 */
const OBEYED = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{e0000}-\u{e007f}]/gu
const RUNS_OF_IT = new RegExp(`(?:${OBEYED.source})+`, 'gu')

/** Colours and the like, as errors of other tools have them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away
const SEQUENCE = /\u001b\[[0-?]*[ -/]*[@-~]/g

/** One line. */
export const printable = (text: string): string => text.replace(SEQUENCE, '').replace(RUNS_OF_IT, ' ')

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
