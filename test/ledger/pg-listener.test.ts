// LISTEN keeps itself up: it comes back after its connection broke and tells so, because what was said in between was
// missed; and it is quiet for good once it is closed.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { sql } from '../../src/ledger/database.js'
import { adoptPg } from '../../src/ledger/databases/pg.js'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'

const NOTIFY = sql`SELECT pg_notify($1, $2)`
const LISTENERS = `
  SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'redrive listener'`
const KILL_LISTENERS = `SELECT pg_terminate_backend(pid) FROM (${LISTENERS}) listener`

/** Hears of a channel, and lets a test wait for what it heard. */
function ear() {
  let ups = 0
  const messages: string[] = []
  return {
    listener: {
      onUp: () => {
        ups += 1
      },
      onMessage: (message: string) => void messages.push(message),
    },
    up: (times: number) => until(`it is up for the ${times}. time`, () => ups >= times),
    heard: (message: string) => until(`it hears "${message}"`, () => messages.includes(message)),
    messages,
  }
}

it('hears what is said, comes back after its connection was killed, and says so', async () => {
  const { db, url = '' } = await freshDatabase('server')
  const { listener, up, heard, messages } = ear()
  db.listen({ open: 'it\'s a "channel"' }, listener)
  await up(1)
  await db.query(NOTIFY, ['it\'s a "channel"', 'mail'])
  await heard('mail')

  for (const round of [2, 3]) {
    expect(await administer(url, KILL_LISTENERS)).toHaveLength(1)
    await up(round)
    await db.query(NOTIFY, ['it\'s a "channel"', `round ${round}`])
    await heard(`round ${round}`)
  }
  expect(messages).toEqual(['mail', 'round 2', 'round 3'])
})

it('is quiet after it was closed, and leaves no connection', async () => {
  const { db, url = '', another } = await freshDatabase('server')
  const { listener, up, messages } = ear()
  const subscription = db.listen({ open: 'channel' }, listener)
  await up(1)
  await subscription?.close()
  await until('its connection is gone', async () => (await administer(url, LISTENERS)).length === 0)
  await db.query(NOTIFY, ['channel', 'too late'])
  expect(messages).toEqual([])

  const hasty = another()
  hasty.listen({ open: 'channel' }, listener)
  await hasty.close()
  await until('one closed while connecting is gone too', async () => (await administer(url, LISTENERS)).length === 0)
})

it('is not there where it was switched off: polling is the truth', async () => {
  const { another } = await freshDatabase('server')
  expect(another({ listen: false }).listen({ open: 'channel' }, ear().listener)).toBeUndefined()
})

it("connects with the password of a pool of the user's, which pg hides from copying", async () => {
  const asked = new Promise<string>((resolve, reject) => {
    // As much of a server as it takes to be told a password: the greeting is answered with a request for it.
    const server = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])) // AuthenticationCleartextPassword
        socket.once('data', answer => resolve(answer.subarray(5, -1).toString()))
      })
    })
    onTestFinished(() => void server.close())
    server.listen(0, '127.0.0.1')
    once(server, 'listening').then(() => {
      const { port } = server.address() as AddressInfo
      const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'ada', password: 'open sesame', database: 'x' })
      const subscription = adoptPg(pool, { schema: 'redrive' }).listen({ open: 'channel' }, ear().listener)
      onTestFinished(async () => {
        await subscription?.close()
        await pool.end()
      })
    }, reject)
  })
  expect(await asked).toBe('open sesame')
})
