// `redrive work` and `redrive serve` with modules, as a person or a supervisor meets them.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { freshDatabase, serverUrl } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'
import { elsewhere, all as mails, resize } from './fixtures/jobs.js'
import { talk } from './fixtures/talkative.js'
import { endAll, type Program, startProgram } from './program.js'

afterAll(() => endAll())

const JOBS = 'test/main/fixtures/jobs.ts'
const TIMEOUT = { timeout: 240_000 }
const SERVES = /^now: {3}serves http:\/\/[\d.]+:(\d+); works on \w+$/m

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

/** A database of its own, and a Redrive on it that works on nothing. */
async function beside() {
  await serverUrl()
  const { url: database = '' } = await freshDatabase('server')
  const redrive = await openRedrive({ database, env: {}, logger: silent })
  onTestFinished(() => redrive.close())
  return { redrive, env: { DATABASE_URL: database, REDRIVE_TOKENS: 'me:operate:my-secret' } }
}

describe('when nobody reads its output any more, a running job finishes and is the last', () => {
  const refuses = async (program: Program) => {
    const [, port] = await program.prints(SERVES)
    const refused = () =>
      new Promise<boolean>(resolve => {
        const socket = connect(Number(port), '127.0.0.1', () => {
          socket.destroy()
          resolve(false)
        })
        socket.on('error', () => resolve(true))
      })
    await until('it takes no more connections', refused, 60_000)
  }
  type Step = (program: Program) => Promise<unknown>

  it.each<[string, string[], Step, Step]>([
    [
      'work',
      [],
      program => program.prints(/^working on talk /m, 'err'),
      program => program.prints(/^stopping: letting 1 running job finish/m, 'err'),
    ],
    ['serve', ['--port', '0'], program => program.prints(SERVES), refuses],
  ])('redrive %s', TIMEOUT, async (command, more, ready, stopping) => {
    const { redrive, env } = await beside()
    const gates = { '/go-on': gate(), '/end': gate() }
    const conductor = createServer(({ url }, response) => {
      void gates[url as keyof typeof gates].passed.then(() => response.end())
    })
    await new Promise<void>(resolve => conductor.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      conductor.closeAllConnections()
      conductor.close()
    })
    const program = startProgram([command, 'test/main/fixtures/talkative.ts', ...more], env, 'cli/main.ts')
    await ready(program)
    const { port } = conductor.address() as AddressInfo
    const { id } = await redrive.enqueue(talk, { url: `http://127.0.0.1:${port}` })
    await program.prints(/^begun$/m)
    program.closeOutput()
    gates['/go-on'].open()
    await stopping(program)
    gates['/end'].open()
    const { code, err } = await program.ended
    expect(code).toBe(0)
    expect(err).not.toContain('EPIPE')
    expect(await redrive.operator.jobs.get(id)).toMatchObject({ state: 'completed', result: 'done' })
  })
})

it('begins no job after SIGTERM, though a request is still under way', TIMEOUT, async () => {
  const { redrive, env } = await beside()
  const program = startProgram(['serve', JOBS, '--queues', 'images', '--port', '0'], env, 'cli/main.ts')
  const [, port] = await program.prints(SERVES)
  const body = JSON.stringify({ name: 'resize', payload: { key: 'late.png' } })
  const socket = connect(Number(port), '127.0.0.1')
  let heard = ''
  socket.on('data', text => {
    heard += text
  })
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  const head = ['host: x', 'authorization: Bearer my-secret', 'content-type: application/json', 'connection: close']
  const length = `content-length: ${body.length}`
  socket.write(['POST /api/queue-admin/jobs HTTP/1.1', ...head, length, 'expect: 100-continue', '', ''].join('\r\n'))
  await once(socket, 'data') // “100 Continue”: it has begun with the request, and waits for the rest of it

  program.signal('SIGTERM')
  const stopped = async () => (await redrive.operator.workers.list({ ended: true })).items[0]?.state === 'stopped'
  await until('its worker has stopped', stopped, 60_000)
  socket.write(body)
  await closed
  expect(heard).toMatch(/^HTTP\/1\.1 201 /m)
  expect(await program.ended).toMatchObject({ code: 0, err: '' })
  const { items } = await redrive.operator.findJobs({ queue: 'images' })
  expect(items).toMatchObject([{ name: 'resize', state: 'waiting' }])
})
