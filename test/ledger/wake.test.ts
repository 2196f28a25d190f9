// A job that goes straight back into the line is announced to every process: its own worker may be leaving, or full.
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { enqueue } from '../../src/ledger/enqueue.js'
import { settle } from '../../src/ledger/settle.js'
import { wakeChannel } from '../../src/ledger/wake-channel.js'
import { freshDatabase } from '../support/databases.js'
import { aJob, aSession, retried, take } from '../support/story.js'

it('a job that is due again at once wakes the workers of other processes; one that is due later does not', async () => {
  const { db, url } = await freshDatabase('server')
  await enqueue(db, [aJob(), aJob()], null)
  const [one, two] = await take(db, await aSession(db))
  if (!one || !two) throw new Error('both were there')
  const listener = new pg.Client({ connectionString: url })
  await listener.connect()
  onTestFinished(() => listener.end())
  const heard: (string | undefined)[] = []
  listener.on('notification', ({ payload }) => heard.push(payload))
  await listener.query(`LISTEN ${wakeChannel(db)}`)

  await settle(db, [retried(one, 60_000)], '1')
  await listener.query('SELECT 1') // what was notified before is heard by now
  expect(heard).toEqual([])

  await settle(db, [retried(two, 0)], '1')
  await listener.query('SELECT 1')
  expect(heard).toEqual(['mail'])
})
