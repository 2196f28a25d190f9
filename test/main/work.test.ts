// `redrive work` and `redrive serve` with modules, as a person or a supervisor meets them.
import { afterAll, expect, it } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { freshDatabase, serverUrl } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'
import { elsewhere, all as mails, resize } from './fixtures/jobs.js'
import { endAll, startProgram } from './program.js'

afterAll(() => endAll())

const JOBS = 'test/main/fixtures/jobs.ts'
const TIMEOUT = { timeout: 240_000 }

it('works on the jobs of a TypeScript module, serves its metrics, and leaves cleanly', TIMEOUT, async () => {
  await serverUrl()
  const { url: database } = await freshDatabase('server', { migrated: false })
  const env = {
    DATABASE_URL: database as string,
    WHO: 'ada',
    LOG_LEVEL: 'warn',
    REDRIVE_TOKENS: 'scrape:read:scrape-secret',
  }
  const args = ['work', JOBS, '--concurrency', '4', '--grace', '100ms', '--metrics-port', '0']
  const program = startProgram(args, env, 'cli/main.ts')
  await program.prints(/"who":"ada","healthy":"\w+","msg":"set up"/, 'err')
  await program.prints(/^working on mail, resize, slow of queues images, mail; Ctrl-C stops$/m, 'err')
  const [, metrics = ''] = await program.prints(/^metrics at (\S+)$/m, 'err')

  const redrive = await openRedrive({ database: database as string, env: {}, logger: silent })
  try {
    const { id } = await redrive.enqueue(resize, { key: 'a.png' })
    const [, slow] = mails
    if (!slow) throw new Error('the fixture has two mails')
    const { id: left } = await redrive.enqueue(slow, null)
    await redrive.enqueue(elsewhere, null)
    const stateOf = async (of: string) => (await redrive.operator.jobs.get(of))?.state
    await until('the job is done', async () => (await stateOf(id)) === 'completed', 90_000)
    expect((await redrive.operator.jobs.get(id))?.result).toBe('resized a.png')
    await program.prints(/"queue":"mail","name":"slow","worker":"[^"]+","msg":"slow has begun"/, 'err')

    expect((await fetch(metrics)).status).toBe(401)
    const scraped = await fetch(metrics, { headers: { authorization: 'Bearer scrape-secret' } })
    expect(await scraped.text()).toContain(
      'redrive_job_attempts_total{queue="images",job="resize",outcome="succeeded"} 1',
    )
    const alive = await fetch(metrics.replace('/metrics', '/healthz'))
    expect(await alive.json()).toEqual({ status: 'ok' })
    expect((await fetch(metrics.replace('/metrics', '/api/queue-admin/me'))).status).toBe(404)

    program.signal('SIGTERM')
    const end = await program.ended
    expect(end.code).toBe(0)
    expect(end.out).toBe('')
    expect(end.err).toMatch(/^stopping: letting 1 running job finish \(Ctrl-C again to stop now\)$/m)
    expect(end.err).toMatch(/"msg":"torn down"/)
    // Given back without spending an attempt (pitfall 9).
    expect(await redrive.operator.jobs.get(left)).toMatchObject({ state: 'waiting', interruptions: 1 })
  } finally {
    await redrive.close()
  }
})

it('serves the API beside the jobs of a module', TIMEOUT, async () => {
  await serverUrl()
  const { url: database } = await freshDatabase('server', { migrated: false })
  const env = { DATABASE_URL: database as string, LOG_LEVEL: 'error' }
  const program = startProgram(['serve', JOBS, '--queues', 'images', '--port', '0'], env, 'cli/main.ts')
  const [, url = ''] = await program.prints(/^now: {3}serves (\S+); works on resize$/m)
  const [, token = ''] = await program.prints(/^token: (\S+) /m)
  const ask = (path: string, body?: object) =>
    fetch(`${url}/api/queue-admin${path}`, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    }).then(response => response.json() as Promise<{ id: string; state: string; result: string }>)
  const { id } = await ask('/jobs', { name: 'resize', payload: { key: 'b.png' } })
  await until('the job is done', async () => (await ask(`/jobs/${id}`)).state === 'completed', 90_000)
  expect((await ask(`/jobs/${id}`)).result).toBe('resized b.png')

  const { port } = new URL(url)
  const second = await startProgram(['serve', '--port', port], env, 'cli/main.ts').ended
  expect(second).toEqual({
    code: 1,
    out: '',
    err: `redrive: Port ${port} of 127.0.0.1 cannot be listened on: it is in use; choose others with --port and --host, or PORT and HOST\n`,
  })
  program.signal('SIGINT')
  expect(await program.ended).toMatchObject({ code: 0, err: '' })
})

it('a queue that no module has is one line', TIMEOUT, async () => {
  const env = { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }
  const end = await startProgram(['work', JOBS, '--queues', 'nobody'], env, 'cli/main.ts').ended
  expect(end).toEqual({
    code: 2,
    out: '',
    err: 'redrive: No job of the modules is of queue nobody; there are images, mail\n',
  })
})
