// What happens, shown as it happens: a table that is drawn again and again on a terminal, lines elsewhere. A ledger that does
// not answer is shown, not fatal.
import { sleep, systemClock } from '../domain/clock.js'
import { printable } from '../domain/printable.js'
import type { Redrive } from '../index.js'
import { countOf, inWords, type LedgerState, readLedger } from './ledger-state.js'
import type { News } from './news.js'
import type { Screen } from './screen.js'
import { coloured, line, plain, table } from './summary.js'

export interface LiveOptions {
  readonly screen: Screen
  readonly news: News
  /** Aborts when it shall end. */
  readonly stop: AbortSignal
  readonly colours: boolean
}

const DRAW_EVERY_MS = 1_000
const LINE_EVERY_MS = 3_000
/** Throughput is taken over so many looks. */
const WINDOW = 10

/** Shows what happens until it is time to stop. `onState`: told what the ledger holds, at every look. */
export async function showLive(
  redrive: Redrive,
  { screen, news, stop, colours }: LiveOptions,
  onState: (state: LedgerState) => void,
): Promise<void> {
  const style = colours ? coloured : plain
  const looks: { at: number; completed: number }[] = []
  let state: LedgerState | undefined
  while (!stop.aborted) {
    let trouble: string | undefined
    try {
      state = await readLedger(redrive)
      onState(state)
      looks.push({ at: systemClock.monotonic(), completed: countOf(state, 'completed') })
      if (looks.length > WINDOW) looks.shift()
    } catch (error) {
      trouble = messageOf(error)
    }
    if (stop.aborted) return
    if (state) {
      const moment = { state, news, perSecond: rate(looks), trouble }
      if (screen.redraws) screen.draw(table(moment, screen.columns, style))
      else screen.say(line(moment, new Date(systemClock.now())))
    }
    await sleep(systemClock, screen.redraws ? DRAW_EVERY_MS : LINE_EVERY_MS, stop)
  }
}

function rate(looks: readonly { at: number; completed: number }[]): number {
  const [first, last] = [looks[0], looks.at(-1)]
  if (!first || !last || last.at <= first.at) return 0
  return Math.max(0, ((last.completed - first.completed) * 1_000) / (last.at - first.at))
}

/** What this run did, and what it leaves. */
export async function farewell(redrive: Redrive, news: News): Promise<string[]> {
  const { completed, retried, died } = news.counts
  const did = `this run: ${completed} completed, ${retried} failed and retried, ${died} died`
  try {
    return [did, `left:     ${inWords(await readLedger(redrive))}`]
  } catch (error) {
    return [did, `left:     the ledger does not answer: ${printable(messageOf(error))}`]
  }
}

export const messageOf = (error: unknown): string => (error as Error)?.message || String(error)
