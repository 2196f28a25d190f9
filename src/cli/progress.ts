// How far long work has come, on stderr: a bar on a terminal, now and then a line anywhere else.
import type { Host } from './cli.js'

const BAR = 24
const EVERY_MS = { terminal: 50, log: 5_000 } as const

export interface Progress {
  at(done: number): void
  /** Takes the bar away: what comes of it is said by the command. */
  end(): void
}

export function progress({ stderr, clock, env }: Host, what: string, total?: number): Progress {
  const bar = stderr.isTTY === true && env.TERM !== 'dumb'
  const everyMs = bar ? EVERY_MS.terminal : EVERY_MS.log
  let shownAt = bar ? Number.NEGATIVE_INFINITY : clock.monotonic()
  let drawn = false
  return {
    at(done) {
      const now = clock.monotonic()
      if (now - shownAt < everyMs) return
      shownAt = now
      const text = `${what} ${done.toLocaleString('en')}${total === undefined ? '' : ` of ${total.toLocaleString('en')}`}`
      if (!bar) return void stderr.write(`${text}\n`)
      drawn = true
      stderr.write(`\r${total === undefined ? '' : `${barOf(done / Math.max(1, total))} `}${text}\u001b[K`)
    },
    end() {
      if (drawn) stderr.write('\r\u001b[K')
    },
  }
}

function barOf(share: number): string {
  const full = Math.round(BAR * Math.min(1, share))
  return `[${'='.repeat(full)}${' '.repeat(BAR - full)}]`
}
