// pitfall 21: "retry all" re-ran completed jobs (oban#926). Our rule: bulk verbs name the states they touch, and nothing that was
// misspelt is passed over: what a person did not say in full is refused, over HTTP as in the library, and changes nothing.
//
// Seen to fail: with shapes that ignore fields they do not know.
import { beforeEach, expect, it } from 'vitest'
import { aDeadLetter, type Desk, openDesk } from '../http/support/desk.js'

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory')
})

it('an empty selection, and a misspelt filter, retry nothing', async () => {
  const id = await aDeadLetter(desk, 'selected')
  const { deadLetters } = desk.redrive.operator
  await expect(deadLetters.retryMany({})).rejects.toMatchObject({ code: 'FILTER_REQUIRED' })
  await expect(deadLetters.retryMany({ quue: 'selected' } as never)).rejects.toMatchObject({ code: 'SETTING_INVALID' })
  expect((await deadLetters.get(id)).status).toBe('pending')
})

it('clean touches the status that was named, and open dead letters only when that was said', async () => {
  const id = await aDeadLetter(desk, 'swept')
  const clean = (body: object) => desk.ask('POST /queues/swept/clean', { body })
  for (const body of [
    { grace: 0 },
    { status: 'dead' },
    { grace: 0, status: 'all' },
    { grace: 0, status: 'dead', includeopen: true },
  ]) {
    expect((await clean(body)).status, JSON.stringify(body)).toBe(400)
  }
  for (const status of ['completed', 'cancelled', 'dead'])
    expect((await clean({ grace: 0, status })).body).toEqual({ removed: 0 })
  expect((await desk.ask(`GET /dead-letter-queue/${id}`)).body.status).toBe('pending')
})

it('a misspelt filter is not a list of everything', async () => {
  const { status, body } = await desk.ask('GET /dead-letter-queue?quue=selected')
  expect(status).toBe(400)
  expect(body.issues).toMatchObject([{ in: 'query', field: 'quue', message: expect.stringContaining('queue') }])
})
