// `npm start`, from the command that a person types to the last process that it leaves: on a port and in a folder of its own.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { buildIfStale, dependenciesAreThere } from '../../scripts/prepare.mjs'
import { layEmbedded } from '../support/databases.js'
import { freePort } from '../support/free-port.js'
import { until } from '../support/until.js'
import { endAll, startCommand } from './program.js'

const START = [process.execPath, ['scripts/start.mjs']] as const

let folder: string
beforeAll(async () => {
  // It would install them, and so take them away from the tests that run beside it.
  if (!dependenciesAreThere()) throw new Error('The lockfile has changed since the dependencies were installed: npm ci')
  if (!(await buildIfStale())) throw new Error('the build failed')
  folder = await mkdtemp(join(tmpdir(), 'redrive-start-'))
})
afterAll(async () => {
  endAll()
  if (folder) await rm(folder, { recursive: true, force: true })
})

/** A port, a ledger and a media folder that nobody else has. */
async function aPlace(name: string) {
  const port = await freePort()
  const env = { PORT: String(port), REDRIVE_DATA: join(folder, name), MEDIA_DIR: join(folder, `${name}-media`) }
  return { port, env }
}

it.each([['npm start', 'npm', ['start']] as const, ['the script itself', ...START] as const])(
  '%s serves, says where, and a Ctrl-C leaves nothing of it',
  { timeout: 120_000 },
  async (how, command, args) => {
    const { port, env } = await aPlace(how)
    await layEmbedded(env.REDRIVE_DATA)
    const program = startCommand(command, args, env, true)
    const [, address, works] = await program.prints(/^now: {3}serves (\S+); works on (.*)$/m)
    expect(address).toBe(`http://127.0.0.1:${port}`)
    expect(works).toBe('thumbnail, provider-operation')
    expect((await fetch(`${address}/healthz`)).status).toBe(200)
    const [, authorization = '', url = ''] = await program.prints(/^try: {3}curl -H 'authorization: ([^']+)' (\S+)$/m)
    expect((await fetch(url, { headers: { authorization } })).status).toBe(200)

    program.signal('SIGINT')
    const end = await program.ended
    // An npm that is interrupted ends in its own way, whatever the program ended with.
    if (command !== 'npm') expect(end.code).toBe(0)
    expect(end.out).toMatch(/^stopping: letting 0 running jobs finish .*\nthis run: .*\nleft: .*\n$/m)
    // What npm itself has to say, such as of a newer npm, is not ours.
    expect(end.err.replace(/^npm .*\n/gm, '')).toBe('')
    await until('none of its processes is left', () => !program.isLeft())
    await expect(fetch(`${address}/healthz`)).rejects.toThrow('fetch failed')
  },
)

describe('what is wrong is one line on stderr, and nothing is left running', { timeout: 120_000 }, () => {
  it('a PORT that is none', async () => {
    const { env } = await aPlace('wrong')
    const program = startCommand(...START, { ...env, PORT: '70000' }, true)
    expect(await program.ended).toEqual({
      code: 2,
      out: '',
      err: expect.stringMatching(/^redrive: PORT is "70000"; .* \[SETTING_INVALID\]\n$/),
    })
    await until('none of its processes is left', () => !program.isLeft())
  })

  it('a port that is in use', async () => {
    const { port, env } = await aPlace('taken')
    await layEmbedded(env.REDRIVE_DATA)
    const other = createServer().listen(port, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const program = startCommand(...START, env, true)
    expect(await program.ended).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        `^redrive: Port ${port} of 127\\.0\\.0\\.1 cannot be listened on: it is in use; choose others with .* PORT and HOST\\n$`,
      ),
    })
    await until('none of its processes is left', () => !program.isLeft())
  })
})
