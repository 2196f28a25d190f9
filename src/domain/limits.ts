// Bounds on everything that comes from outside (invariant 6). What is cut shows that it was cut.

export const LIMITS = {
  payloadBytes: 1_048_576,
  resultBytes: 1_048_576,
  progressBytes: 16_384,
  messageChars: 8_192,
  stackChars: 32_768,
  causes: 10,
  reasonChars: 4_096,
  notesChars: 65_536,
  nameChars: 200,
  keyChars: 512,
  enqueueBatch: 10_000,
  delayMs: 10 * 365 * 24 * 3_600_000,
} as const

/**
 * Text of at most `maxChars`: what is longer is cut and says how much is missing, once, however often it is capped.
 * What Postgres cannot store (NUL, half a surrogate pair) becomes U+FFFD.
 */
export function cap(text: string, maxChars: number): string {
  const cut = text.length <= maxChars ? text : shortened(text, maxChars)
  return cut.includes('\0') || !cut.isWellFormed() ? cut.toWellFormed().replaceAll('\0', '\uFFFD') : cut
}

const markOf = (missing: number): string => ` … [${missing} more characters cut]`

function shortened(text: string, maxChars: number): string {
  const kept = Math.max(0, maxChars - markOf(text.length).length)
  return text.slice(0, kept) + markOf(text.length - kept)
}
