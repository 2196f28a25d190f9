// Text for a terminal or a line of a log. Names, payloads and errors come from anywhere: what a terminal would obey never
// gets there (invariant 9).

/**
 * Controls, line separators and formatting that hides or turns text; the joiners of emoji and of some scripts stay. Of the
 * block of invisible tags all goes, also what has no meaning yet.
 */
export const OBEYED = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u{e0000}-\u{e007f}]/gu
const RUNS_OF_IT = new RegExp(`(?:${OBEYED.source})+`, 'gu')

/** Colours and the like, as errors of other tools have them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away
const SEQUENCE = /\u001b\[[0-?]*[ -/]*[@-~]/g

/** One line. */
export const printable = (text: string): string => text.replace(SEQUENCE, '').replace(RUNS_OF_IT, ' ')
