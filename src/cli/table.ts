// Rows as a table that fits the terminal: columns that may be cut give way, the widest first. Pure.
import { printable } from '../domain/printable.js'
import { type Paint, PLAIN, type Style } from './style.js'
import { cut, padEnd, padStart, widthOf } from './text.js'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | undefined
  /** Numbers. */
  readonly right?: boolean
  /** Long texts: the first to be cut. */
  readonly long?: boolean
  /** Never cut, as an id that is to be copied. */
  readonly whole?: boolean
  /** Left out where there is no room for all, the last one first. */
  readonly spare?: boolean
  readonly paint?: (row: Row, style: Style) => Paint | undefined
}

export interface Page {
  /** Undefined: as wide as it gets. */
  readonly width?: number | undefined
  readonly style?: Style
}

const GAP = '  '
const NARROWEST = 6
/** So much of a long text is worth more than a spare column. */
const READABLE = 16

export function table<Row>(rows: readonly Row[], all: readonly Column<Row>[], page: Page = {}): string[] {
  const { style = PLAIN, width: limit } = page
  const laidOut = all.map(column => {
    const texts = rows.map(row => textOf(column.value(row)))
    return { column, texts, natural: Math.max(widthOf(column.title), ...texts.map(widthOf)) }
  })
  const kept = limit === undefined ? laidOut : withRoom(laidOut, limit)
  const columns = kept.map(({ column }) => column)
  const cells = rows.map((_, at) => kept.map(({ texts }) => texts[at] ?? ''))
  const titles = columns.map(({ title }) => title)
  const natural = kept.map(one => one.natural)
  const widths = limit === undefined ? natural : fitted(natural, columns, limit)
  const line = (texts: readonly string[], paint: (at: number) => Paint) => {
    const laid = columns.map(({ right }, at) => {
      const text = cut(texts[at] ?? '', widths[at] ?? 0)
      const pad = right ? padStart : padEnd
      const last = at === columns.length - 1 && !right
      const padded = last ? text : pad(text, widths[at] ?? 0)
      return { padded, paint: paint(at) }
    })
    const plain = laid.map(({ padded }) => padded).join(GAP)
    // Many columns on a narrow terminal: the line itself is cut, and then without its colours.
    if (limit !== undefined && widthOf(plain) > limit) return cut(plain, limit).trimEnd()
    return laid
      .map(({ padded, paint: colour }) => colour(padded))
      .join(GAP)
      .trimEnd()
  }
  return [
    line(titles, () => style.dim),
    ...rows.map((row, at) => line(cells[at] ?? [], column => columns[column]?.paint?.(row, style) ?? asIs)),
  ]
}

const asIs: Paint = text => text

const textOf = (value: string | number | undefined): string => (value === undefined ? '-' : printable(String(value)))

interface LaidOut {
  readonly column: Pick<Column<never>, 'long' | 'spare'>
  readonly natural: number
}

/** Without as many of the spare columns as it takes to leave long texts some room. */
function withRoom<Laid extends LaidOut>(all: readonly Laid[], limit: number): readonly Laid[] {
  const needed = all.reduce(
    (sum, { column, natural }) => sum + GAP.length + (column.long ? Math.min(natural, READABLE) : natural),
    -GAP.length,
  )
  const last = all.findLastIndex(({ column }) => column.spare)
  return needed <= limit || last === -1 ? all : withRoom(all.toSpliced(last, 1), limit)
}

/** Takes from the widest of those that may be cut, then from the widest of the others. */
function fitted<Row>(natural: readonly number[], columns: readonly Column<Row>[], limit: number): number[] {
  const widths = [...natural]
  const gaps = GAP.length * (columns.length - 1)
  let surplus = widths.reduce((sum, width) => sum + width, gaps) - limit
  for (const mayGive of [
    (at: number) => columns[at]?.long === true,
    (at: number) => !(columns[at]?.right || columns[at]?.whole),
  ]) {
    while (surplus > 0) {
      const giving = widths.flatMap((width, at) => (mayGive(at) && width > NARROWEST ? [{ at, width }] : []))
      const [widest] = giving.sort((one, other) => other.width - one.width)
      if (!widest) break
      widths[widest.at] = widest.width - 1
      surplus -= 1
    }
  }
  return widths
}
