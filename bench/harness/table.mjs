// Numbers and rows as people read them.

/** Three significant digits, thousands as k, millions as M. @param {number | undefined} value */
export function shortNumber(value) {
  if (value === undefined || !Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 999_500) return `${digits(value / 1e6)}M`
  if (size >= 9_995) return `${digits(value / 1e3)}k`
  return size >= 1_000 ? String(Math.round(value)) : digits(value)
}

/** @param {number} value */
const digits = value => {
  const size = Math.abs(value)
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)
}

/**
 * Columns as wide as their widest cell; the first is to the left, the others to the right unless they say otherwise.
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 * @param {readonly number[]} [leftColumns]
 */
export function table(head, rows, leftColumns = [0]) {
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map(row => (row[column] ?? '').length), title.length),
  )
  /** @param {readonly string[]} row */
  const line = row =>
    widths
      .map((width, column) => {
        const cell = row[column] ?? ''
        return leftColumns.includes(column) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  return [line(head), widths.map(width => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}
