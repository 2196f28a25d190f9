// Data goes to stdout, as a table, JSON or JSON lines; words go to stderr.
import { printable } from '../domain/printable.js'
import { type Style, styleFor } from './style.js'
import { type Column, table } from './table.js'
import { printableJson } from './text.js'

export const FORMATS = ['table', 'json', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface OutputOptions {
  readonly format: Format
  /** Cut tables to so many columns; otherwise to the terminal's, and not at all where there is none. */
  readonly width: number | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What a person reads of one thing: lines, in these colours. */
export type Story<Value> = (value: Value, style: Style) => readonly string[]

export class Output {
  readonly format: Format
  readonly #out: Stream
  readonly #words: Stream
  readonly #width: number | undefined
  readonly #style: Style

  constructor(out: Stream, words: Stream, { format, width, env }: OutputOptions) {
    this.#out = out
    this.#words = words
    this.format = format
    this.#width = width ?? (out.isTTY ? out.columns : undefined)
    this.#style = styleFor(out, env)
  }

  /** Many of a kind. `empty`: what to tell a person when there are none. */
  list<Row>(rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void {
    if (this.format === 'json') this.#write([printableJson(rows, 2)])
    else if (this.format === 'jsonl') this.#write(rows.map(row => printableJson(row)))
    else if (rows.length === 0) this.say(empty)
    else this.#write(this.table(rows, columns))
  }

  /** One thing: in JSON as the API gave it. */
  one<Value>(value: Value, story: Story<Value>): void {
    if (this.format === 'json') this.#write([printableJson(value, 2)])
    else if (this.format === 'jsonl') this.#write([printableJson(value)])
    else this.#write(story(value, this.#style))
  }

  /** A table inside a story. */
  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string[] {
    return table(rows, columns, { width: this.#width, style: this.#style })
  }

  /** Words for a person, beside the data. */
  say(text: string): void {
    this.#words.write(`${printable(text)}\n`)
  }

  #write(lines: readonly string[]): void {
    if (lines.length > 0) this.#out.write(`${lines.join('\n')}\n`)
  }
}
