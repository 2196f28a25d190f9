// What reaches a terminal: nothing that it would obey, and nothing wider than it is (pitfall 27).
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COLOURED, PLAIN } from '../../src/cli/style.js'
import { type Column, table } from '../../src/cli/table.js'
import { cut, printableJson, printableLines, widthOf } from '../../src/cli/text.js'
import { ago, duration, moment } from '../../src/cli/time.js'
import { printable } from '../../src/domain/printable.js'

/** What a terminal acts upon, or what hides or turns text. */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u

const EVIL = [
  '\u001b[2J\u001b[31mred\u001b[0m',
  '\u001b]0;title\u0007',
  '\u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\',
  '\u009b31mred',
  'a\rb\bc\u007fd',
  'abc\u202edcba',
  '\u2066x\u2069',
  'one\u2028two',
  '\ud800 lonely',
  'hidden \u{e0002}\u{e0041}',
]

describe('text from anywhere', () => {
  it.each(EVIL)('is shown without what a terminal would obey: %j', text => {
    expect(printable(text)).not.toMatch(OBEYED)
    expect(printableLines(text).join('')).not.toMatch(OBEYED)
    expect(printableJson({ text, [text]: 1 })).not.toMatch(OBEYED)
    expect(JSON.parse(printableJson({ text }))).toEqual({ text })
  })

  it('whatever it is', () => {
    const any = fc.string({ unit: 'binary', maxLength: 60 })
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 40 }), (text, columns) => {
        expect(printable(text)).not.toMatch(OBEYED)
        expect(JSON.parse(printableJson(text, 2))).toBe(text)
        expect(widthOf(cut(printable(text), columns))).toBeLessThanOrEqual(columns)
      }),
    )
  })

  it('keeps what is meant: words of any script, emoji, lines of a stack', () => {
    expect(printable('naïve 日本語 👩‍👩‍👧 می‌خواهم')).toBe('naïve 日本語 👩‍👩‍👧 می‌خواهم')
    expect(printableLines('Error: no\r\n\tat a\n    at b')).toEqual(['Error: no', '  at a', '    at b'])
    expect(printable('\u001b[31mred\u001b[39m')).toBe('red')
  })

  it('is cut by columns, not by characters', () => {
    expect(cut('日本語のエラー', 7)).toBe('日本語…')
    expect(cut('日本語のエラー', 14)).toBe('日本語のエラー')
    expect(cut('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 5)).toBe('👩‍👩‍👧👩‍👩‍👧…')
    expect(cut('plain', 5)).toBe('plain')
    expect(cut('plain', 4)).toBe('pla…')
  })
})

describe('a table', () => {
  interface Row {
    readonly id: string
    readonly count: number
    readonly text: string | undefined
  }
  const columns: readonly Column<Row>[] = [
    { title: 'ID', value: row => row.id, whole: true },
    {
      title: 'COUNT',
      value: row => row.count,
      right: true,
      paint: (row, style) => (row.count > 9 ? style.red : undefined),
    },
    { title: 'TEXT', value: row => row.text, long: true },
  ]
  const rows: Row[] = [
    { id: 'aaaa-1', count: 1, text: '日本語のエラーがここに' },
    { id: 'bbbb-22', count: 1_000, text: 'plain text, and much of it' },
    { id: 'c', count: 0, text: undefined },
  ]

  it('is as wide as it gets where there is no terminal', () => {
    expect(table(rows, columns)).toEqual([
      'ID       COUNT  TEXT',
      'aaaa-1       1  日本語のエラーがここに',
      'bbbb-22   1000  plain text, and much of it',
      'c            0  -',
    ])
  })

  it('cuts long texts to fit one, and ids never', () => {
    expect(table(rows, columns, { width: 30 })).toEqual([
      'ID       COUNT  TEXT',
      'aaaa-1       1  日本語のエラ…',
      'bbbb-22   1000  plain text, a…',
      'c            0  -',
    ])
  })

  it('leaves spare columns out before it cuts long texts short', () => {
    const spare = columns.map(column => ({ ...column, spare: column.right === true }))
    expect(table(rows, spare, { width: 30 })).toEqual([
      'ID       TEXT',
      'aaaa-1   日本語のエラーがここ…',
      'bbbb-22  plain text, and much…',
      'c        -',
    ])
    expect(table(rows, spare, { width: 60 })[0]).toBe('ID       COUNT  TEXT')
  })

  it.each([20, 25, 40, 80])('never goes beyond %i columns', width => {
    for (const line of table(rows, columns, { width })) expect(widthOf(line)).toBeLessThanOrEqual(width)
  })

  it('has colours only where they are shown', () => {
    expect(table(rows, columns, { style: PLAIN }).join('')).not.toContain('\u001b')
    expect(table(rows, columns, { style: COLOURED })[2]).toContain('\u001b[31m 1000\u001b[39m')
  })

  it('takes a name for a name, whatever is in it', () => {
    const [, line = ''] = table([{ id: EVIL.join(''), count: 1, text: EVIL.join('\n') }], columns)
    expect(line).not.toMatch(OBEYED)
  })
})

it('times are said shortly', () => {
  const now = Date.parse('2026-11-15T14:00:00Z')
  expect([0, 999, 1_000, 61_000, 3_600_000, 90_061_000].map(duration)).toEqual([
    '0ms',
    '999ms',
    '1s',
    '1m 1s',
    '1h',
    '1d 1h',
  ])
  expect(ago('2026-11-15T13:57:01Z', now)).toBe('2m')
  expect(ago('2026-11-15T14:00:01Z', now)).toBe('0s')
  expect(moment('2026-11-13T14:00:00.123Z', now)).toBe('2026-11-13 14:00:00Z (1d ago)')
  expect(moment('2026-11-15T14:05:00Z', now)).toBe('2026-11-15 14:05:00Z (in 5m)')
})
