// The doctor in front of real databases: what is wrong is found, and what cannot be looked at is said to be so.
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/domain/clock.js'
import type { Database } from '../../src/ledger/database.js'
import { examine } from '../../src/operator/doctor.js'
import { DOCTOR_CHECKS } from '../../src/operator/doctor-findings.js'
import { administer, freshDatabase } from '../support/databases.js'
import { openLibrary } from '../support/library.js'

const OPTIONS = { clock: systemClock, recoveryIntervalMs: 300_000 }

const findingsOf = async (db: Database, options = {}) => (await examine(db, { ...OPTIONS, ...options })).findings
const of = async (db: Database, check: string, options = {}) =>
  (await findingsOf(db, options)).filter(finding => finding.check === check)

describe('the doctor', { timeout: 60_000 }, () => {
  it('finds nothing wrong with a fresh embedded ledger', async () => {
    const { db } = await freshDatabase('memory')
    const { well, findings } = await examine(db, OPTIONS)
    expect(findings.map(({ check, status }) => [check, status])).toEqual(DOCTOR_CHECKS.map(check => [check, 'ok']))
    expect(well).toBe(true)
  })

  it('finds what is not migrated, and does not look at what is not there', async () => {
    const { db } = await freshDatabase('server', { migrated: false })
    const { well, findings } = await examine(db, OPTIONS)
    expect(well).toBe(false)
    expect(findings.find(({ check }) => check === 'migrations')).toMatchObject({
      status: 'problem',
      message: expect.stringContaining('0001_foundation.sql'),
      advice: expect.stringContaining('redrive migrate'),
    })
    expect(findings.filter(({ status }) => status === 'skipped').map(({ check }) => check)).toEqual([
      'workers',
      'paused queues',
      'recovery',
      'breakers',
    ])
  })

  it('finds a server that is too old', async () => {
    const { db } = await freshDatabase('memory')
    const old: Database = {
      ...db,
      query: async (statement, params) =>
        statement.text.includes('server_version_num') ? ([{ version: 130_004 }] as never) : db.query(statement, params),
    }
    expect((await of(old, 'database')).at(-1)).toMatchObject({
      status: 'problem',
      message: expect.stringContaining('13.4'),
    })
    expect(await of(old, 'workers')).toMatchObject([{ status: 'skipped' }])
  })

  it('finds a clock that is wrong', async () => {
    const { db } = await freshDatabase('server')
    expect(await of(db, 'clock')).toMatchObject([{ status: 'ok' }])
    const clock = { ...systemClock, now: () => systemClock.now() - 3_600_000 }
    expect(await of(db, 'clock', { clock })).toMatchObject([
      {
        status: 'problem',
        message: expect.stringMatching(/^The clock of this process is .+ behind the database's\.$/),
      },
    ])
  })

  it('finds a transaction that was left open, until it ends', async () => {
    const { db, url } = await freshDatabase('server')
    const client = new pg.Client({ connectionString: url, application_name: 'left open' })
    await client.connect()
    try {
      const { rows } = await client
        .query('BEGIN; SELECT pg_backend_pid() AS pid, pg_current_xact_id()')
        .then(answers => (answers as unknown as pg.QueryResult<{ pid: number }>[])[1] ?? { rows: [] })
      const [found] = (await of(db, 'transactions', { longTransactionMs: 0 })).filter(({ message }) =>
        message.includes('left open'),
      )
      expect(found).toMatchObject({
        status: 'problem',
        message: expect.stringContaining('idle in transaction'),
        advice: expect.stringContaining(`pg_terminate_backend(${rows[0]?.pid})`),
      })
      expect(await of(db, 'transactions')).toMatchObject([{ status: 'ok' }])
      await client.query('COMMIT')
      const after = await of(db, 'transactions', { longTransactionMs: 0 })
      expect(after.filter(({ message }) => message.includes('left open'))).toEqual([])
    } finally {
      await client.end()
    }
  })

  it('finds a live table without vacuum', async () => {
    const { db, url = '' } = await freshDatabase('server')
    await administer(url, 'ALTER TABLE redrive.job SET (autovacuum_enabled = false)')
    expect(await of(db, 'vacuum')).toMatchObject([
      {
        status: 'problem', // Of the server, where it is off there as well.
        message: expect.stringMatching(/^Autovacuum of the (?:table job|server) is off\.$/),
      },
    ])
  })

  it('finds jobs that nobody takes, paused queues and services that are held', async () => {
    const { redrive, db } = await openLibrary('server')
    await redrive.enqueueNamed('alone', {}, { queue: 'unworked' })
    await redrive.enqueueNamed('alone', {}, { queue: 'halted' })
    await redrive.operator.queues.pause('halted', { actor: 'ada' })
    await redrive.operator.services.isolate('bank', { actor: 'ada', reason: 'moved' })
    await redrive.recover()
    const { findings, well } = await redrive.operator.doctor()
    expect(well).toBe(false)
    const told = (check: string) =>
      findings.filter(one => one.check === check).map(({ status, message }) => ({ status, message }))
    expect(told('workers')).toEqual([
      { status: 'problem', message: expect.stringContaining('queue unworked and no worker') },
    ])
    expect(told('paused queues')).toEqual([
      { status: 'problem', message: expect.stringContaining('Queue halted was paused by ada') },
    ])
    expect(told('breakers')).toEqual([
      { status: 'problem', message: expect.stringContaining('bank has been isolated') },
    ])
    expect(told('recovery')).toEqual([{ status: 'ok', message: expect.stringContaining('It last ran') }])
    expect(await examine(db, OPTIONS)).toMatchObject({ well: false })
  })
})
