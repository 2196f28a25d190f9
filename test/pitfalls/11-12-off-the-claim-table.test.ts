// Finished and failed jobs leave the table that claims are made from, so that they cost live work nothing.
// Seen red: with a COMPLETE, and with a BURY, that selects its row instead of deleting it.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/runtime/definition.js'
import { bury, cancel } from '../../src/runtime/verdict.js'
import { openRuntime } from '../support/runtime.js'

describe('pitfalls 11 and 12: rows of what is over make claims slow', () => {
  it('pitfall 11, pitfall 12: completed, cancelled and dead jobs are not in the claim table, in one statement each', async () => {
    const { db, work, enqueue, next } = await openRuntime()
    const job = defineJob<string>({
      name: 'send',
      queue: 'mail',
      handler: async end => (end === 'bury' ? bury('no') : end === 'cancel' ? cancel('no') : 'done'),
    })
    const ends = Promise.all([next('job.completed'), next('job.cancelled'), next('job.dead')])
    for (const end of ['complete', 'cancel', 'bury']) await enqueue(job, end)
    work([job])
    await ends
    const count = async (table: string) =>
      Number((await db.query<{ n: string }>({ text: `SELECT count(*) AS n FROM redrive.${table}` }))[0]?.n)
    expect(await count('job')).toBe(0)
    expect(await count('finished_job')).toBe(2)
    expect(await count('dead_letter')).toBe(1)
    expect(await count('attempt')).toBe(2)
  })

  it('pitfall 12: a failed job that waits for its retry is not in the claim index', async () => {
    const { db, enqueue } = await openRuntime()
    const [row] = await db.query<{ definition: string }>({
      text: `SELECT pg_get_indexdef('redrive.job_claimable'::regclass) AS definition`,
    })
    expect(row?.definition).toMatch(/WHERE in_line$/)
    const id = await enqueue(defineJob({ name: 'send', queue: 'mail' }), 1)
    const moveTo = (state: string, inLine: boolean) =>
      db.query({ text: 'UPDATE redrive.job SET state = $1, in_line = $2 WHERE id = $3' }, [state, inLine, id])
    await expect(moveTo('retrying', true)).rejects.toMatchObject({ code: '23514' })
    await expect(moveTo('waiting', false)).rejects.toMatchObject({ code: '23514' })
    await moveTo('retrying', false)
  })
})
