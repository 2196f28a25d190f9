// One connection that LISTENs, kept up by itself: when it breaks it is made again, with growing pauses. Missing a
// message is harmless, because polling is the truth; `onUp` tells the listener to look for itself.
//
// The name of a secret channel is in no text of a statement, which others might see. For as long as somebody listens there, it has a
// lock of that name: a process that was killed loses it at once, and whoever would say something there can tell.
import pg from 'pg'
import type { Clock, Timer } from '../../domain/clock.js'
import type { Channels, Listener, Subscription } from '../database.js'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
/** A hand-over that looks whether somebody listens has the lock itself, for as long as it takes to write that down. */
const LOCK_LIMIT_MS = 1_000
const LOCK_NOT_AVAILABLE = '55P03'

const NAME_SECRET = `
  SELECT set_config('redrive.channel', $1, false), set_config('lock_timeout', '${LOCK_LIMIT_MS}', false),
         pg_try_advisory_lock(hashtextextended($1, 0)) AS locked`
const LOCK_SECRET = `SELECT pg_advisory_lock(hashtextextended(current_setting('redrive.channel'), 0))`
const LISTEN_SECRETLY = `DO $$ BEGIN EXECUTE format('LISTEN %I', current_setting('redrive.channel')); END $$`

export function subscribe(config: pg.ClientConfig, channels: Channels, listener: Listener, clock: Clock): Subscription {
  let client: pg.Client | undefined
  let timer: Timer | undefined
  let pauseMs = FIRST_PAUSE_MS
  let closed = false

  const again = (broken: pg.Client) => {
    if (closed || client !== broken) return
    client = undefined
    broken.end().catch(() => {})
    timer = clock.timer(pauseMs, connect, { background: true })
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }

  const connect = () => {
    // A pool hides its password from being copied along with the rest.
    const secret = config.password === undefined ? {} : { password: config.password }
    const next = new pg.Client({ ...config, ...secret, application_name: 'redrive listener', statement_timeout: 0 })
    client = next
    next.on('error', () => again(next))
    next.on('end', () => again(next))
    next.on('notification', message => listener.onMessage(message.payload ?? '', message.channel))
    listenOn(next, channels)
      .then(() => {
        if (closed || client !== next) return
        pauseMs = FIRST_PAUSE_MS
        listener.onUp()
      })
      .catch(() => again(next))
  }
  connect()

  return {
    async close() {
      closed = true
      timer?.cancel()
      await client?.end().catch(() => {})
    },
  }
}

async function listenOn(client: pg.Client, { open, secret }: Channels): Promise<void> {
  await client.connect()
  await client.query(`LISTEN ${client.escapeIdentifier(open)}`)
  if (secret === undefined) return
  const { rows } = await client.query<{ locked: boolean }>(NAME_SECRET, [secret])
  if (!rows[0]?.locked) await client.query(LOCK_SECRET).catch(unlessOurselves)
  await client.query(LISTEN_SECRETLY)
}

/** The connection before this one, of which the server does not know yet that it broke: it has the lock in our place. */
function unlessOurselves(error: Error & { code?: string }): void {
  if (error.code !== LOCK_NOT_AVAILABLE) throw error
}
