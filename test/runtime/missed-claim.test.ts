// A connection can break after a claim was carried out and before its answer came. The session holds the jobs then, so
// nobody else will ever take them: the worker itself has to find them.
import { PGlite } from '@electric-sql/pglite'
import { expect, onTestFinished, test } from 'vitest'
import { defineJob, openRedrive } from '../../src/index.js'
import { gate } from '../support/gate.js'

test('a job runs although the answer to its claim was lost', async () => {
  const pglite = await PGlite.create()
  let lost = 0
  const unreliable = {
    async query(text: string, params: unknown[]) {
      if (params.length === 0) return { rows: (await pglite.exec(text)).at(-1)?.rows ?? [] }
      const answer = await pglite.query(text, params)
      if (lost > 0 || !text.includes('.draw(') || answer.rows.length === 0) return answer
      lost = answer.rows.length
      throw new Error('Connection terminated unexpectedly')
    },
  }
  const redrive = await openRedrive({ database: unreliable, env: { LOG_LEVEL: 'silent' }, pollMs: 20 })
  onTestFinished(async () => {
    await redrive.close({ graceMs: 0 })
    await pglite.close()
  })
  const ran: number[] = []
  const all = gate()
  const job = defineJob<number>({
    name: 'count',
    handler: async number => {
      ran.push(number)
      if (ran.length === 3) all.open()
    },
  })
  await redrive.enqueueMany(
    job,
    [1, 2, 3].map(payload => ({ payload })),
  )
  redrive.work([job])
  await all.passed
  expect(lost).toBeGreaterThan(0)
  expect(ran.sort()).toEqual([1, 2, 3])
})
