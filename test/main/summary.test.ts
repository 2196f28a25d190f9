// The live summary as text. What comes from outside is shown, never obeyed.
import { describe, expect, it } from 'vitest'
import { inWords, isEmpty, type LedgerState, lastRecovery } from '../../src/demo/ledger-state.js'
import { openScreen } from '../../src/demo/screen.js'
import { coloured, line, plain, table } from '../../src/demo/summary.js'
import type { QueueStatistics } from '../../src/index.js'

const aQueue = (queue: string, counts: Partial<QueueStatistics> = {}): QueueStatistics => ({
  queue,
  waiting: 0,
  active: 0,
  scheduled: 0,
  retrying: 0,
  held: 0,
  completed: 0,
  cancelled: 0,
  dead: 0,
  oldestWaitingAt: null,
  paused: false,
  ...counts,
})

const aState = (queues: QueueStatistics[], change: Partial<LedgerState> = {}): LedgerState => ({
  queues,
  deadLetters: [],
  recovery: { totalRuns: 0, successfulRuns: 0, failedRuns: 0, running: false, recent: [] },
  ...change,
})

const aMoment = (queues: QueueStatistics[], latest: string[] = []) => ({
  state: aState(queues),
  news: { latest, add() {}, counts: { completed: 0, retried: 0, died: 0 } },
  perSecond: 2.5,
  trouble: undefined,
})

describe('the table', () => {
  it('has a row for each queue and one for all', () => {
    const moment = aMoment([
      aQueue('mail', { waiting: 2, completed: 40 }),
      aQueue('billing', { retrying: 1, paused: true }),
    ])
    expect(table(moment, 100, plain).map(row => row.replace(/ +/g, ' '))).toEqual([
      'queue waiting active retrying scheduled completed dead',
      'mail 2 0 0 0 40 0',
      'billing (paused) 0 0 1 0 0 0',
      'all 2 0 1 0 40 0',
      '2.5 completed a second',
      '',
    ])
  })

  it('is never wider than the terminal, and never longer than a page for many queues', () => {
    const queues = Array.from({ length: 200 }, (_, index) => aQueue(`queue-${'x'.repeat(index)}`))
    const rows = table(aMoment(queues, ['y'.repeat(500)]), 60, plain)
    expect(Math.max(...rows.map(row => row.length))).toBeLessThanOrEqual(60)
    expect(rows.length).toBeLessThan(20)
    expect(rows.join('\n')).toContain('and 188 more')
  })

  it('passes nothing on that a terminal would obey', () => {
    const evil = 'a\u001b[2Jb\u0007c\r\nd\u009b1me\u202ef'
    const moment = { ...aMoment([aQueue(evil)], [evil]), trouble: evil }
    for (const text of [...table(moment, 200, plain), line(moment, new Date(0))]) {
      expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    }
    expect(table(moment, 200, coloured).join('')).toContain('\u001b[31m')
  })
})

it('says in words what the ledger holds', () => {
  const state = aState([aQueue('mail', { waiting: 2, retrying: 1, completed: 40, dead: 2 })], {
    deadLetters: [
      { queue: 'mail', status: 'pending', kind: 'validation', count: 1 },
      { queue: 'mail', status: 'recovered', kind: 'network', count: 5 },
    ],
  })
  expect(inWords(state)).toBe(
    '3 jobs will still run (2 waiting, 1 retrying); 40 completed; 1 open dead letter (1 validation)',
  )
  expect(isEmpty(state)).toBe(false)
  expect(isEmpty(aState([aQueue('mail')]))).toBe(true)
  expect(lastRecovery(state, 0)).toBeUndefined()
})

describe('the screen', () => {
  const terminal = (isTTY: boolean) => {
    const written: string[] = []
    return { written, isTTY, columns: 80, rows: 24, write: (text: string) => written.push(text) > 0 }
  }
  type Out = Parameters<typeof openScreen>[0]

  it('draws a frame over the one before, and leaves the cursor visible', () => {
    const out = terminal(true)
    const screen = openScreen(out as unknown as Out, {})
    screen.draw(['one', 'two'])
    screen.draw(['three'])
    screen.close()
    expect(out.written[1]).toContain('\u001b[2A')
    expect(out.written.at(-1)).toBe('\u001b[?25h')
  })

  it('only adds lines where there is no terminal, or a dumb one', () => {
    for (const [out, env] of [
      [terminal(false), {}],
      [terminal(true), { TERM: 'dumb' }],
    ] as const) {
      const screen = openScreen(out as unknown as Out, env)
      screen.say('one')
      screen.close()
      expect(screen.redraws).toBe(false)
      expect(out.written).toEqual(['one\n'])
    }
  })
})
