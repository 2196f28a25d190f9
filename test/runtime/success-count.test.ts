// A success that a broker carried is counted once, whatever becomes of the answer to that.
import { expect, it, onTestFinished } from 'vitest'
import type { SessionId } from '../../src/domain/ids.js'
import type { Database } from '../../src/ledger/database.js'
import { openPg } from '../../src/ledger/databases/pg.js'
import { SuccessCount } from '../../src/runtime/success-count.js'
import { freshDatabase } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { EMBEDDED_AND_SERVER, rowsOf } from '../support/ledger-state.js'
import { openProxy } from '../support/proxy.js'
import { aSession } from '../support/story.js'

const counted = async (db: Database): Promise<Record<string, number>> => {
  const totals: Record<string, number> = {}
  for (const { queue, completed } of (await rowsOf(db, 'tally')) as { queue: string; completed: number }[]) {
    totals[queue] = (totals[queue] ?? 0) + completed
  }
  return totals
}

it.each(EMBEDDED_AND_SERVER)('what is told is not told again, on $name', async ({ open }) => {
  const { db } = await open()
  const session = await aSession(db)
  const successes = new SuccessCount(db)
  for (const queue of ['mail', 'mail', 'news']) successes.add(queue)
  await successes.tell(session)
  await successes.tell(session)
  successes.add('mail')
  await successes.tell(session)
  expect(await counted(db)).toEqual({ mail: 3, news: 1 })
})

it('whichever answer of the ledger is lost, each success is counted once', async () => {
  const { db, url = '' } = await freshDatabase('server')
  const session = await aSession(db)
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  // From the first answer of a connection that is made for it to the last, until there is none left to lose.
  for (let before = 0; proxy.swallowed === before; before += 1) {
    const through = openPg(proxy.url, { schema: db.schema, poolSize: 1 })
    onTestFinished(() => through.close())
    const successes = new SuccessCount(through)
    successes.add('mail')
    proxy.swallowAnswers(1, before)
    await tellUntilHeard(successes, session)
    proxy.swallowAnswers(0)
    expect(await counted(db), `after ${before} answers`).toEqual({ mail: before + 1 })
  }
  // The connection, and a transaction that was begun, written and committed.
  expect(proxy.swallowed).toBeGreaterThanOrEqual(4)
})

it('a commit that is still under way is waited for, and counted or told again as it ends', async () => {
  const { db } = await freshDatabase('server')
  const session = await aSession(db)
  let ending = gate()
  let ended: Promise<unknown> = Promise.resolve()
  let isHeard = false
  const unheard: Database = {
    ...db,
    transaction(work) {
      if (isHeard) return db.transaction(work)
      return new Promise((_resolve, reject) => {
        ended = db
          .transaction(async tx => {
            await work(tx)
            reject(new Error('the connection broke'))
            await ending.passed
          })
          .catch(() => {})
      })
    },
  }
  const successes = new SuccessCount(unheard)
  successes.add('mail')
  await expect(successes.tell(session)).rejects.toThrow('broke')
  isHeard = true
  successes.add('mail')
  await successes.tell(session)
  expect(await counted(db)).toEqual({})
  ending.open()
  await ended
  await successes.tell(session)
  expect(await counted(db)).toEqual({ mail: 2 })

  ending = gate()
  isHeard = false
  successes.add('mail')
  await expect(successes.tell(session)).rejects.toThrow('broke')
  isHeard = true
  ending.refuse(new Error('the server gave it up'))
  await ended
  await successes.tell(session)
  expect(await counted(db)).toEqual({ mail: 3 })
})

async function tellUntilHeard(successes: SuccessCount, session: SessionId): Promise<void> {
  for (;;) {
    try {
      return await successes.tell(session)
    } catch {} // Lost.
  }
}
