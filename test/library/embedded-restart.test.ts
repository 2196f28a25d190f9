// The embedded database has one process at a time: whoever opens it knows that the last one is gone, and does not wait
// for its lease.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { defineJob, openRedrive } from '../../src/index.js'
import { openPGlite } from '../../src/ledger/databases/pglite.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { migrate } from '../../src/ledger/migrate.js'
import { layEmbedded } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { aJob, aSession, take } from '../support/story.js'

const AN_HOUR_MS = 3_600_000

it('a job of a process that died is rescued after the next start, however long its lease still was', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-restart-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))

  // A process that claims a job and is gone: its session was never ended.
  await layEmbedded(folder)
  const dying = await openPGlite(folder, { schema: 'redrive' })
  await migrate(dying)
  await enqueue(dying, [aJob()], null)
  expect(await take(dying, await aSession(dying, AN_HOUR_MS))).toHaveLength(1)
  await dying.close()

  const redrive = await openRedrive({ dataDir: folder, env: {}, logger: silent })
  onTestFinished(() => redrive.close())
  const rescued = new Promise<string>(resolve => redrive.on('job.rescued', ({ worker }) => resolve(worker)))
  const completed = new Promise<void>(resolve => redrive.on('job.completed', () => resolve()))
  redrive.work([defineJob({ name: 'send', queue: 'mail', handler: async () => null })])
  expect(await rescued).toBe('worker-1')
  await completed
})
