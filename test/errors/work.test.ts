// What `work`, `perform` and `retryable` refuse, before anything is started.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { defineJob, openRedrive, type Redrive, type WorkOptions } from '../../src/index.js'
import { embeddedCopy } from '../support/databases.js'
import { silent } from '../support/runtime.js'

let redrive: Redrive
beforeAll(async () => {
  redrive = await openRedrive({ database: await embeddedCopy(), env: {}, logger: silent })
})
afterAll(() => redrive.close())

const handler = async () => null
const mail = defineJob({ name: 'mail', queue: 'post', handler })
const bill = defineJob({ name: 'bill', queue: 'money', handler })
const remote = defineJob({ name: 'remote', queue: 'far' })

it.each<[string, Parameters<Redrive['work']>[0], WorkOptions, string, RegExp]>([
  ['no jobs', [], {}, 'SETTING_INVALID', /^The list of jobs to work on is "empty"; it must be at least one job$/],
  [
    'a queue that no job uses',
    [mail, bill],
    { queues: ['post', 'letters'] },
    'SETTING_INVALID',
    /^A queue to work on is "letters"; it must be one that the given jobs use: post, money$/,
  ],
  ['no queue at all', [mail], { queues: [] }, 'SETTING_INVALID', /^The list of jobs to work on is "empty"/],
  ['the same job twice', [mail, mail], {}, 'SETTING_INVALID', /^The list of jobs to work on is "mail twice"/],
  [
    'a job without a handler',
    [mail, remote],
    {},
    'HANDLER_MISSING',
    /^Job remote has no handler, so it cannot be worked/,
  ],
  [
    'no concurrency',
    [mail],
    { concurrency: 0 },
    'SETTING_INVALID',
    /^concurrency is 0; it must be a whole number from 1/,
  ],
  ['half a slot', [mail], { concurrency: 1.5 }, 'SETTING_INVALID', /^concurrency is 1.5/],
  ['endless slots', [mail], { concurrency: Number.POSITIVE_INFINITY }, 'SETTING_INVALID', /^concurrency is Infinity/],
])('work with %s', (_, definitions, options, code, message) => {
  const refused = (() => {
    try {
      return redrive.work(definitions, options)
    } catch (error) {
      return error
    }
  })()
  expect(refused).toMatchObject({ code, message: expect.stringMatching(message) })
})

it('a job without a handler is worked on by nobody, and performed by nobody', async () => {
  const worker = redrive.work([mail, remote], { queues: ['post'] })
  await worker.stop()
  const retry = { attempts: 1 }
  const performing = redrive.perform(defineJob({ name: 'remote', retry }), null)
  await expect(performing).rejects.toMatchObject({ code: 'HANDLER_MISSING', message: 'Job remote has no handler here' })
})

it('perform checks its payload before anything runs', async () => {
  await expect(redrive.perform(mail, 1n as never)).rejects.toMatchObject({ code: 'PAYLOAD_NOT_SERIALISABLE' })
})
