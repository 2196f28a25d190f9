// Failures of one cause travel together (ledger/settle/shared-failure.ts); what is stored must be what each of them said.
import { expect, it } from 'vitest'
import type { Failure } from '../../src/domain/failure.js'
import { attemptsOf } from '../../src/ledger/attempt.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { record } from '../../src/ledger/settle/record.js'
import { shareFailures } from '../../src/ledger/settle/shared-failure.js'
import { settle } from '../../src/ledger/settle.js'
import { freshDatabase } from '../support/databases.js'
import { buried } from '../support/settlements.js'
import { aFailure, aJob, aSession, take } from '../support/story.js'

const FRAMES = '\n    at charge (file:///app/charge.js:3:9)\n    at run (file:///app/run.js:9:1)'

function failed(message: string, more: Partial<Failure> = {}): Failure {
  const { stack: _, ...failure } = aFailure({ kind: 'permanent', message, fingerprint: 'v1:one' })
  return { ...failure, stack: `Error: ${message}${FRAMES}`, ...more }
}

const { stack: _, ...withoutStack } = failed('no stack at all')

const FAILURES: Failure[] = [
  failed('order 1 was refused'),
  failed('order 22 was refused'),
  failed('order 3 was refused', { code: 'E_CARD' }),
  failed('order 4 was refused', { causes: [{ type: 'Error', message: 'because' }] }),
  failed('order 5 was refused', {
    stack: `Error: order 5 was refused${FRAMES}\n    at more (file:///app/more.js:1:1)`,
  }),
  failed('order 6 was refused', { stack: 'Error: another text altogether' }),
  failed('order 7 was refused', { stack: 'Error: another text altogether' }),
  failed('Error', { stack: `Error: Error${FRAMES}` }),
  failed('Err', { stack: `Error: Err${FRAMES}` }),
  failed(''),
  failed('größer als 𝟙 €'),
  failed('kleiner als 𝟚 €'),
  failed('with \\ and "quotes"\nand lines'),
  withoutStack,
  { ...withoutStack, message: 'nor here' },
]

it('what is alike travels once', () => {
  const batch = FAILURES.slice(0, 3).map((failure, at) =>
    buried({ id: `${at}`, lease: `${at}`, receipt: `(0,${at})` } as never, failure),
  )
  const rows = batch.map(record)
  expect(shareFailures(rows)).toEqual({
    shapes: [
      expect.objectContaining({ before: 'Error: ', after: FRAMES }),
      expect.objectContaining({ error_code: 'E_CARD' }),
    ],
    likes: '{1,1,2}',
    messages: ['order 1 was refused', 'order 22 was refused', 'order 3 was refused'],
  })
})

it('and a reason that is its own beside it', () => {
  const batch = [1, 2].map(at => {
    const end = buried({ id: `${at}`, lease: `${at}` } as never, FAILURES[0])
    return { ...end, decision: { ...end.decision, reason: `died ${at}` } }
  })
  expect(shareFailures(batch.map(record))).toMatchObject({ likes: '{1,1}', reasons: [undefined, 'died 2'] })
})

it.each(['memory', 'server'] as const)('and each retry is stored with its own delay and reason (%s)', async kind => {
  const { db } = await freshDatabase(kind)
  await enqueue(
    db,
    FAILURES.map(() => aJob()),
    null,
  )
  const jobs = await take(db, await aSession(db), FAILURES.length)
  const ends = jobs.map((job, at) => {
    const failure = FAILURES[at] as Failure
    const decision = { type: 'retry', delayMs: 1_000 * (at + 1), reason: `again in ${at + 1} s` } as const
    return { id: job.id, lease: job.lease, outcome: { type: 'failed', failure }, decision } as const
  })
  expect(await settle(db, ends, '1')).toEqual([])
  for (const [at, job] of jobs.entries()) {
    const { message, stack, code } = FAILURES[at] as Failure
    const [attempt] = await attemptsOf(db, job.id)
    expect(attempt).toMatchObject({ message, reason: `again in ${at + 1} s`, delayMs: 1_000 * (at + 1) })
    expect([attempt?.stack, attempt?.errorCode]).toEqual([stack, code])
  }
})

it.each(['memory', 'server'] as const)('and is stored as each of them said (%s)', async kind => {
  const { db } = await freshDatabase(kind)
  await enqueue(
    db,
    FAILURES.map(() => aJob()),
    null,
  )
  const jobs = await take(db, await aSession(db), FAILURES.length)
  const ends = jobs.map((job, at) => buried(job, FAILURES[at]))
  expect(await settle(db, ends, '1')).toEqual([])
  for (const [at, job] of jobs.entries()) {
    const { message, stack, code, causes } = FAILURES[at] as Failure
    const stored = { message, causes, stack, errorCode: code }
    const letter = await getDeadLetter(db, job.id)
    const [attempt] = await attemptsOf(db, job.id)
    for (const found of [letter, attempt]) {
      expect({
        message: found?.message,
        causes: found?.causes,
        stack: found?.stack,
        errorCode: found?.errorCode,
      }).toEqual(stored)
    }
  }
})
