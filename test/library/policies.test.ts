// Policies at run time, as a person sets them: checked, versioned, audited, with their sources, for queues and job names.
import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY, defineJob, fixed } from '../../src/index.js'
import { VERSIONS_KEPT } from '../../src/ledger/policy.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('policies at run time on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind, { retry: { attempts: 4, jitter: false } })
  })
  const policies = () => library.redrive.operator.policies

  it('are set, read with where each setting comes from, and taken away', async () => {
    const { redrive } = library
    const job = defineJob({ name: 'resize', queue: 'images', timeoutMs: 30_000, handler: async () => null })
    const worker = redrive.work([job])
    await worker.ready
    await worker.stop()
    expect(await policies().get({ queue: 'images', job: 'resize' })).toMatchObject({
      policy: { ...DEFAULT_POLICY, attempts: 4, jitter: false, timeoutMs: 30_000 },
      sources: { attempts: 'settings', timeoutMs: 'definition', backoff: 'default' },
      versions: { queue: 0, job: 0 },
      set: {},
    })
    await policies().set({ queue: 'images' }, { attempts: 7, retryKinds: { permanent: true } })
    await policies().set({ job: 'resize' }, { attempts: 2, backoff: fixed({ delayMs: 10 }) }, { actor: 'ada' })
    expect(await policies().get({ queue: 'images', job: 'resize', maxAttempts: 9 })).toMatchObject({
      policy: { attempts: 2, backoff: { type: 'fixed', delayMs: 10 }, retryKinds: { permanent: true } },
      sources: { attempts: 'job', backoff: 'job', retryKinds: { permanent: 'queue', network: 'default' } },
      layers: { settings: { attempts: 4 }, enqueue: { attempts: 9 }, queue: { attempts: 7 }, job: { attempts: 2 } },
      versions: { queue: 1, job: 1 },
      set: { job: { version: 1, setBy: 'ada' } },
    })
    expect((await policies().get({ job: 'resize' })).policy).toMatchObject({ attempts: 2, timeoutMs: 30_000 })
    expect((await policies().get({ queue: 'images' })).policy.attempts).toBe(7)
    expect(await policies().list()).toMatchObject([
      { scope: 'job', target: 'resize', version: 1 },
      { scope: 'queue', target: 'images', version: 1 },
    ])
    expect(await policies().remove({ job: 'resize' })).toMatchObject({ version: 2, policy: null })
    expect(await policies().get({ queue: 'images', job: 'resize', maxAttempts: 9 })).toMatchObject({
      policy: { attempts: 7 },
      versions: { queue: 1, job: 2 },
    })
    expect(await policies().list()).toMatchObject([{ scope: 'queue' }])
  })

  it('keep who set what, when and why, and leave an audit row for each change', async () => {
    await policies().set({ queue: 'history' }, { attempts: 7 })
    await policies().set({ queue: 'history' }, { attempts: 2 }, { actor: 'ada', reason: 'the source is down' })
    await policies().remove({ queue: 'history' }, { actor: 'bob' })
    expect(await policies().history({ queue: 'history' })).toMatchObject([
      { version: 3, policy: null, setBy: 'bob' },
      { version: 2, policy: { attempts: 2 }, setBy: 'ada', reason: 'the source is down', setAt: expect.any(Date) },
      { version: 1, policy: { attempts: 7 }, setBy: 'library' },
    ])
    expect(await library.audit('queue', 'history')).toMatchObject(
      [
        { action: 'remove policy', actor: 'bob', before: { attempts: 2 }, after: null },
        { action: 'set policy', actor: 'ada', before: { attempts: 7 }, after: { attempts: 2 }, reason: /down/ },
        { action: 'set policy', before: null, after: { attempts: 7 } },
      ].map(({ reason, ...row }) => (reason ? { ...row, reason: expect.stringMatching(reason) } : row)),
    )
    await policies().set({ job: 'a name' }, { attempts: 7 })
    expect(await library.audit('job_name', 'a name')).toMatchObject([{ action: 'set policy' }])
  })

  it('are changed only at the version that was read, if one is named', async () => {
    const of = { queue: 'if-match' }
    expect(await policies().set(of, { attempts: 2 }, { expectedVersion: 0 })).toMatchObject({ version: 1 })
    await expect(policies().set(of, { attempts: 3 }, { expectedVersion: 0 })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
      message: 'The policy of queue if-match is at version 1, not 0; read it again and decide anew',
      details: { version: 1, expectedVersion: 0 },
    })
    await expect(policies().remove(of, { expectedVersion: 7 })).rejects.toMatchObject({ code: 'VERSION_CONFLICT' })
    expect(await policies().remove(of, { expectedVersion: 1 })).toMatchObject({ version: 2 })
    // Of several at once with the same expectation, one wins.
    const ends = await Promise.allSettled(
      [3, 4, 5, 6].map(attempts => policies().set(of, { attempts }, { expectedVersion: 2 })),
    )
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await policies().history(of)).toHaveLength(3)
    expect(await library.audit('queue', 'if-match')).toHaveLength(3)
  })

  it('set by several at once are all set, one after the other', async () => {
    const of = { job: 'at once' }
    const made = await Promise.all([2, 3, 4, 5].map(attempts => policies().set(of, { attempts })))
    expect(made.map(({ version }) => version).sort()).toEqual([1, 2, 3, 4])
    const changes = (await library.audit('job_name', 'at once')).map(({ before, after }) => [before, after]).reverse()
    expect(changes.slice(1).map(([before]) => before)).toEqual(changes.slice(0, -1).map(([, after]) => after))
  })

  it('keep a bounded history', async () => {
    for (let version = 1; version <= VERSIONS_KEPT + 3; version += 1)
      await policies().set({ job: 'often' }, { attempts: 1 + (version % 9) })
    const history = await policies().history({ job: 'often' })
    expect([history.length, history[0]?.version, history.at(-1)?.version]).toEqual([
      VERSIONS_KEPT,
      VERSIONS_KEPT + 3,
      4,
    ])
  })

  it.each<[string, () => Promise<unknown>, RegExp]>([
    ['a bad setting', () => policies().set({ queue: 'q' }, { attempts: 0 }), /^policy of queue q.attempts is 0/],
    [
      'an unknown setting',
      () => policies().set({ job: 'j' }, { attemps: 1 } as object),
      /^A key of policy of job j is "attemps"/,
    ],
    [
      'a function',
      () => policies().set({ job: 'j' }, { backoff: { type: 'custom' } }),
      /^policy of job j.backoff is "custom"/,
    ],
    ['no target', () => policies().set({} as { queue: string }, {}), /^A policy is "of nothing"/],
    ['two targets', () => policies().set({ queue: 'q', job: 'j' } as never, {}), /^A policy is "of both"/],
    ['a name that is none', () => policies().remove({ queue: '' }), /^queue is ""/],
    ['a version that is none', () => policies().remove({ queue: 'q' }, { expectedVersion: 1.5 }), /^expectedVersion/],
    ['no question', () => policies().get({}), /^A policy is "of nothing"/],
  ])('are refused with %s, in one clear line', async (_what, act, message) => {
    await expect(act()).rejects.toMatchObject({ code: 'SETTING_INVALID', message: expect.stringMatching(message) })
  })
})
