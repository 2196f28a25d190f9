// Maintenance has no leader to lose: whichever process gets there first runs it, and when it last ran can be seen.
// Seen red: with Recovery.start() left out of `work`, and with a run of a dead process never given up.
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob, openRedrive, type Redrive } from '../../src/index.js'
import { startRun } from '../../src/ledger/recovery-run.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'

const job = defineJob({ name: 'send', handler: async () => null })

async function story() {
  const fresh = await freshDatabase('server')
  const open = async (name: string): Promise<Redrive> => {
    const settings = { env: {}, logger: silent, pollMs: 1_000, recoveryIntervalMs: 200 }
    const redrive = await openRedrive({ database: fresh.url ?? '', name, ...settings })
    onTestFinished(() => redrive.close())
    redrive.work([job])
    return redrive
  }
  const lastBy = async (redrive: Redrive) => (await redrive.recoveryStatus()).recent[0]?.worker
  return { ...fresh, open, lastBy }
}

describe('pitfall 18: maintenance stops when its leader is lost', () => {
  it('pitfall 18: two processes share it; when the one that ran it is gone, the other runs it; the last run is shown', async () => {
    const { open, lastBy } = await story()
    const one = await open('one')
    await until('one has run it', async () => (await lastBy(one)) === 'one')
    const two = await open('two')
    await one.close()
    await until('two runs it', async () => (await lastBy(two)) === 'two')
    const before = await two.recoveryStatus()
    const after = await until('and again', async () => {
      const now = await two.recoveryStatus()
      return now.totalRuns > before.totalRuns && !now.running && now
    })
    expect(after.failedRuns).toBe(0)
    expect(after.lastRunAt?.getTime()).toBeGreaterThan(before.lastRunAt?.getTime() ?? 0)
    expect(after.lastRunDurationMs).toBeGreaterThanOrEqual(0)
  })

  it('pitfall 18: a process that was killed in the middle of a run does not stop the others for long', async () => {
    const { db, open, lastBy } = await story()
    await startRun(db, 'schedule', 'a process that was killed')
    const survivor = await open('survivor')
    expect(await survivor.recover(), 'it may still be alive').toBeUndefined()
    await db.query({ text: "UPDATE redrive.recovery_run SET alive_at = alive_at - interval '61 seconds'" })
    await until('the survivor runs it', async () => (await lastBy(survivor)) === 'survivor')
    const { recent } = await survivor.recoveryStatus()
    expect(recent.find(({ worker }) => worker === 'a process that was killed')).toMatchObject({
      status: 'failed',
      error: 'its process stopped showing life',
    })
  })
})
