// Several statements as one transaction, each sent before the one before it is answered: Postgres works on one while the next
// is made here. Needs connections that send without waiting (`pipeline`) and can be given bytes: those of a pool of our own.
import type { Clock } from '../../domain/clock.js'
import type { Piece, Statement, WireParam } from '../database.js'
import { askClient } from './pg-ask.js'
import type { Lend } from './pg-lend.js'
import type { Patience } from './pg-patience.js'
import type { PreparedNames } from './pg-prepared.js'

export interface TogetherOptions {
  readonly lend: Lend
  readonly render: (statement: Statement) => string
  readonly prepared: PreparedNames
  readonly patience: Patience
  readonly clock: Clock
}

/** So many may be on their way or being worked on: enough that nobody waits, and little enough to hold in memory. */
const MOST_UNANSWERED = 3

export async function sendTogether(pieces: readonly Piece[], options: TogetherOptions): Promise<void> {
  try {
    await sendAll(pieces, options)
  } catch (error) {
    // A statement that got lost took the transaction with it: once more, without any.
    if (!options.prepared.wasLost(error as Error)) throw error
    await sendAll(pieces, options)
  }
}

const sendAll = (pieces: readonly Piece[], options: TogetherOptions): Promise<void> =>
  options.lend(async (client, broke) => {
    const { render, prepared, patience, clock } = options
    const send = (text: string, values: readonly WireParam[] = [], name?: string): Promise<unknown> => {
      const answer = askClient(client, { text, values: [...values], ...(name && { name }) }, patience)
      // Looked at when it is its turn.
      answer.catch(() => {})
      return answer
    }
    /** Lets what was written go out. */
    const turn = () => new Promise<void>(resolve => clock.soon(resolve))
    try {
      // Answered before anything follows: else what follows might not be in a transaction.
      await send('BEGIN')
      const answers: Promise<unknown>[] = []
      for (const piece of pieces) {
        const { statement, params } = piece()
        const text = render(statement)
        answers.push(send(text, params, statement.hot && prepared.nameOf(text)))
        await (answers.at(-MOST_UNANSWERED) ?? turn())
      }
      // A transaction in which something failed is rolled back by this as well.
      answers.push(send('COMMIT'))
      await Promise.all(answers)
    } catch (error) {
      // Answered after all that was sent before it.
      await send('ROLLBACK').catch(broke)
      throw error
    }
  })
