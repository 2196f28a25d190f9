// The providers of the demo fail as they say they do; the module for `redrive work` is one; and the program starts and ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { resourceGroups } from '../../../apps/providers/demo/resource-group.js'
import { requestOf } from '../../../apps/providers/demo/run-demo.js'
import { crashing, flaky, forbidden, mistaken, withQuota } from '../../../apps/providers/demo/troubled.js'
import { providerRequest } from '../../../apps/providers/request.js'
import { beforeFirst, freshDatabase } from '../../support/databases.js'
import { openScene, type Scene } from './support/scene.js'

const LONG = 120_000
const root = fileURLToPath(new URL('../../..', import.meta.url))

describe('providers of the demo', { timeout: LONG }, () => {
  let scene: Scene
  beforeFirst(async () => {
    scene = await openScene({}, { kind: 'server' })
    const { registry } = scene.worker
    registry.register('Demo/Group', resourceGroups())
    registry.register('Demo/Flaky', flaky)
    registry.register(
      'Demo/Quota',
      withQuota(() => 0),
    )
    registry.register('Demo/Forbidden', forbidden)
    registry.register('Demo/Broken', { ...crashing, ...mistaken })
  })
  const ask = (resourceType: string, operation: string, request = {}) => ({
    provider: 'Demo',
    resourceType,
    operation,
    request,
  })

  it('keep resource groups', async () => {
    const group = { name: 'a', location: 'westeurope' }
    expect(await scene.completed(ask('Group', 'create', group))).toEqual(group)
    expect(await scene.completed(ask('Group', 'get', { name: 'a' }))).toEqual(group)
    expect(await scene.completed(ask('Group', 'update', { ...group, location: 'northeurope' }))).toBe(1)
    expect(await scene.completed(ask('Group', 'list'))).toEqual([{ ...group, location: 'northeurope' }])
    expect(await scene.completed(ask('Group', 'delete', { name: 'a' }))).toBeUndefined()
    expect((await scene.died(ask('Group', 'delete', { name: 'a' }))).message).toContain('is already gone')
    expect((await scene.died(ask('Group', 'create', { name: 'a' }))).kind).toBe('validation')
  })

  it('fail in their own ways', async () => {
    expect(await scene.completed(ask('Flaky', 'create'))).toEqual({ attempt: 3 })
    for (let used = 1; used <= 5; used += 1) expect(await scene.completed(ask('Quota', 'create'))).toEqual({ used })
    const { id } = await scene.desk.submit(ask('Quota', 'create'))
    expect((await scene.next('job.retrying', id)).failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 10_000 })
    expect((await scene.died(ask('Forbidden', 'get'))).kind).toBe('authentication')
    expect((await scene.died(ask('Broken', 'update'))).kind).toBe('permanent')
    expect(await scene.died(ask('Broken', 'create'))).toMatchObject({ kind: 'system', totalAttempts: 3 })
  })
})

it('every request of the demo is one', () => {
  for (let nth = 0; nth < 10; nth += 1) expect(() => providerRequest.parse(requestOf(nth))).not.toThrow()
})

it('jobs.ts is a module for `redrive work`', async () => {
  vi.stubEnv('AMQP_URL', '')
  const module = await import('../../../apps/providers/jobs.js')
  expect(module.providerOperation).toMatchObject({ name: 'provider-operation', queue: 'provider.jobs' })
  expect(module.setup).toBeTypeOf('function')
  expect(module.transports).toEqual({})
  vi.unstubAllEnvs()
})

it('the program starts, says where it is, and ends at a signal', { timeout: LONG }, async () => {
  const { url: database } = await freshDatabase('server', { migrated: false })
  const program = spawn(process.execPath, ['--import', 'tsx', 'apps/providers/main.ts', '--demo', '--port', '0'], {
    cwd: root,
    env: { ...process.env, AMQP_URL: '', REDRIVE_TOKENS: '', DATABASE_URL: database, LOG_LEVEL: 'error' },
  })
  try {
    let said = ''
    let complained = ''
    program.stderr.on('data', text => {
      complained += text
    })
    await new Promise<void>((resolve, reject) => {
      program.stdout.on('data', text => {
        said += text
        if (said.includes('/metrics')) resolve()
      })
      program.once('exit', code => reject(new Error(`It ended with ${code}: ${complained}`)))
    })
    const [, url] = /Provider worker at (http:\S+);/.exec(said) ?? []
    const [token] = /rdr_[\w-]+/.exec(said) ?? []
    const answer = await fetch(`${url}/queue-stats`, { headers: { authorization: `Bearer ${token}` } })
    expect(answer.status).toBe(200)
    program.removeAllListeners('exit')
    program.kill('SIGINT')
    expect(await once(program, 'exit')).toEqual([0, null])
  } finally {
    program.kill('SIGKILL')
  }
})
