// Where the summary goes. On a terminal a frame is drawn over the one before; anywhere else lines follow each other.

/** What is drawn on: a terminal, or anything that takes text. */
export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export interface Screen {
  readonly columns: number
  readonly redraws: boolean
  /** A line that stays. */
  say(text: string): void
  /** A frame that the next one replaces; kept on the screen by `say` and `close`. */
  draw(lines: readonly string[]): void
  close(): void
}

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
/** A line that is too long after all is cut, not continued: the frame keeps its height. */
const NO_WRAP = '\u001b[?7l'
const WRAP = '\u001b[?7h'
const toStartOf = (height: number) => `\u001b[${height}A\r\u001b[0J`

export function openScreen(out: Terminal, env: Readonly<Record<string, string | undefined>>): Screen {
  const redraws = out.isTTY === true && env.TERM !== 'dumb'
  const say = (text: string) => void out.write(`${text}\n`)
  if (!redraws) return { columns: 200, redraws, say, draw: lines => lines.forEach(say), close() {} }

  let height = 0
  return {
    redraws,
    get columns() {
      return Math.max(20, (out.columns || 80) - 1)
    },
    say(text) {
      height = 0
      say(text)
    },
    draw(lines) {
      const shown = lines.slice(0, Math.max(1, (out.rows || 24) - 1))
      const back = height > 0 ? toStartOf(height) : ''
      out.write(`${HIDE_CURSOR}${NO_WRAP}${back}${shown.join('\n')}\n${WRAP}`)
      height = shown.length
    },
    close() {
      out.write(SHOW_CURSOR)
    },
  }
}
