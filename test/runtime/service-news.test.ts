// News of services travel on the channel that workers listen on anyway, and are not taken for the name of a queue.
import { expect, it } from 'vitest'
import { moveBreaker, setServiceSettings } from '../../src/ledger/breaker.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { freshDatabase } from '../support/databases.js'
import { aSession } from '../support/story.js'
import { until } from '../support/until.js'

it('a move and new settings are heard by other processes, as such', async () => {
  const fresh = await freshDatabase('server')
  const transport = postgresTransport(fresh.another())
  const heard: (string | undefined)[] = []
  let woken = 0
  const stop = transport.onNews(service => heard.push(service))
  const lanes = [{ queue: 's3', name: 'upload' }]
  transport.consume({ session: await aSession(fresh.db), lanes, onWake: () => (woken += 1) })
  // Coming up is news as well: whatever was said before was missed.
  await until('it listens', () => heard.includes(undefined))
  const wokenBefore = woken
  const move = { service: 's3', fromVersion: 0, openings: 1, shadow: false, reason: 'a story', changedBy: 'the fleet' }
  await moveBreaker(fresh.db, { ...move, state: 'open', openMs: 1_000 }, transport.channel)
  await until('it heard of the move', () => heard.at(-1) === 's3')
  await setServiceSettings(fresh.db, 'mail', { breaker: { probes: 1 } }, 'ann', transport.channel)
  await until('it heard of the settings', () => heard.at(-1) === 'mail')
  expect(woken).toBe(wokenBefore)
  stop()
  // Told by nobody who lost the race.
  expect(await moveBreaker(fresh.db, { ...move, state: 'closed' }, transport.channel)).toBe(false)
  await transport.close()
})
