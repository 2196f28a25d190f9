// Opening a Redrive on everything it may be given, and closing it.
import { access, mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/domain/clock.js'
import { defineJob, type ForeignClient, openRedrive, type RedriveOptions } from '../../src/index.js'
import { adoptPg } from '../../src/ledger/databases/pg.js'
import { freshDatabase } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'

const greet = defineJob<string, string, string>({ name: 'greet', handler: async name => `hello ${name}` })

/** Opens, runs one job through a worker, and returns what became of it. */
async function runsOn(options: RedriveOptions) {
  const redrive = await openRedrive({ env: {}, logger: silent, pollMs: 50, ...options })
  onTestFinished(() => redrive.close({ graceMs: 0 }))
  const done = new Promise<void>(resolve => void redrive.on('job.completed', () => resolve()))
  const { id } = await redrive.enqueue(greet, 'ada')
  const worker = redrive.work([greet])
  await done
  expect(await redrive.operator.jobs.get(id)).toMatchObject({ state: 'completed', result: 'hello ada' })
  return { redrive, worker, id }
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-library-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('a Redrive opens', () => {
  it('in memory', async () => {
    await runsOn({ database: ':memory:' })
  })

  it('with nothing given: embedded, on disk, where it was told, and keeps what it had', async () => {
    const dataDir = join(await temporaryFolder(), 'data')
    const { redrive, id } = await runsOn({ dataDir })
    await redrive.close()
    const again = await openRedrive({ env: { REDRIVE_DATA: dataDir }, logger: silent })
    expect(await again.operator.jobs.get(id)).toMatchObject({ state: 'completed' })
    await again.close()
  })

  it('with nothing given and nothing told in .redrive under the current folder', async () => {
    const folder = await temporaryFolder()
    const before = process.cwd()
    process.chdir(folder)
    onTestFinished(() => process.chdir(before))
    const redrive = await openRedrive({ env: {}, logger: silent })
    await access(join(folder, '.redrive', 'pgdata'))
    await redrive.close()
  })

  it('on a URL', async () => {
    const { url = '' } = await freshDatabase('server', { migrated: false })
    await runsOn({ database: url })
  })

  it('in a schema of another name, from the settings or the options', async () => {
    const { url = '', db } = await freshDatabase('server', { migrated: false })
    await runsOn({ database: url, env: { REDRIVE_SCHEMA: 'from_env' } })
    await runsOn({ database: url, env: { REDRIVE_SCHEMA: 'from_env' }, schema: 'from_options' })
    const rows = await db.query({ text: "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'from_%' ORDER BY 1" })
    expect(rows).toEqual([{ nspname: 'from_env' }, { nspname: 'from_options' }])
  })

  it("on a user's own pool, which stays open when the Redrive closes", async () => {
    const { url } = await freshDatabase('server', { migrated: false })
    const pool = new pg.Pool({ connectionString: url, max: 3 })
    const { redrive } = await runsOn({ database: pool })
    await redrive.close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })

  it("listens with the password of a user's own pool, which a pool hides from being copied", async () => {
    const server = createServer(socket => {
      socket.once('data', () => {
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])) // "send me your password"
        socket.once('data', answer => told.open(answer.subarray(5, -1).toString()))
      })
    })
    const told = gate<string>()
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'ada', password: 'secret', database: 'x' })
    const options = { schema: 'redrive', folder: '', clock: systemClock }
    const listening = adoptPg(pool, options).listen({ open: 'wake' }, { onMessage: () => {}, onUp: () => {} })
    expect(await told.passed).toBe('secret')
    await listening?.close()
    server.close()
  })

  it('on anything with query(text, params): a single connection', async () => {
    const { url } = await freshDatabase('server', { migrated: false })
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { redrive } = await runsOn({ database: { query: (text, params) => client.query(text, params) } })
    await redrive.close()
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await client.end()
  })

  it("on a PGlite of the user's own, with enqueue in its transaction", async () => {
    const pglite = await PGlite.create()
    const { redrive, worker } = await runsOn({ database: pglite as unknown as ForeignClient })
    await worker.stop()
    const later = { delayMs: 60_000 }
    const inTransaction = (rollBack: boolean) =>
      pglite.transaction(async tx => {
        const { id } = await redrive.enqueue(greet, 'bob', { ...later, tx: tx as unknown as ForeignClient })
        if (rollBack) await tx.rollback()
        return id
      })
    await redrive.enqueue(greet, 'bob', later)
    const kept = await inTransaction(false)
    await inTransaction(true)
    expect((await redrive.operator.jobs.get(kept))?.state).toBe('scheduled')
    const [statistics] = await redrive.operator.queues.statistics()
    expect(statistics?.scheduled).toBe(2)
    await redrive.close()
    await pglite.close()
  })
})

describe('a Redrive closes', () => {
  it('once, however often it is told; and does nothing afterwards but say so', async () => {
    const { url = '' } = await freshDatabase('server', { migrated: false })
    const { redrive } = await runsOn({ database: url })
    const closing = redrive.close()
    expect(redrive.close()).toBe(closing)
    await closing
    const closed = { code: 'ALREADY_CLOSED', message: 'This Redrive was closed' }
    await expect(redrive.enqueue(greet, 'ada')).rejects.toMatchObject(closed)
    await expect(redrive.enqueueMany(greet, [{ payload: 'ada' }])).rejects.toMatchObject(closed)
    await expect(redrive.perform(greet, 'ada')).rejects.toMatchObject(closed)
    await expect(redrive.recover()).rejects.toMatchObject(closed)
    await expect(redrive.recoveryStatus()).rejects.toMatchObject(closed)
    await expect(async () => redrive.work([greet])).rejects.toMatchObject(closed)
    await expect(async () => redrive.operator).rejects.toMatchObject(closed)
  })

  it('with its workers, which give back what they cannot finish in time', async () => {
    const { url = '' } = await freshDatabase('server', { migrated: false })
    const redrive = await openRedrive({ database: url, env: {}, logger: silent })
    let started = false
    const endless = defineJob({
      name: 'endless',
      handler: () => {
        started = true
        return new Promise<never>(() => {})
      },
    })
    const { id } = await redrive.enqueue(endless, null)
    const worker = redrive.work([endless])
    await until('it runs', () => started)
    await redrive.close({ graceMs: 0 })
    expect(worker.active).toBe(0)
    const again = await openRedrive({ database: url, env: {}, logger: silent })
    expect(await again.operator.jobs.get(id)).toMatchObject({ state: 'waiting', attempt: 0, interruptions: 1 })
    await again.close()
  })
})
