// Groups as people work with them, on each kind of database: told of when they appear and come back, taken on, resolved,
// merged and split; every change audited.
import { describe, expect, it } from 'vitest'
import { defineJob, openRedrive, PermanentError, type Redrive } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'
import { silent } from '../support/runtime.js'

class Refused extends PermanentError {}
class Gone extends PermanentError {}
const ERRORS = { Refused, Gone }
type Cause = keyof typeof ERRORS

describe.each(LIBRARIES)('groups on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind, { version: '1.0' })
  })
  const groups = () => library.redrive.operator.groups
  const jobOf = (queue: string) =>
    defineJob({
      name: `job of ${queue}`,
      queue,
      handler: async ({ cause, nth }: { cause: Cause; nth: number }) => {
        throw new ERRORS[cause](`order ${nth} was not taken`)
      },
    })

  /** So many jobs of a queue die of a cause; returns the group. */
  async function die(queue: string, cause: Cause, count: number, redrive: Redrive = library.redrive, tenant?: string) {
    const job = jobOf(queue)
    let left = count
    const died = new Promise<string>(resolve => {
      const stop = redrive.on('job.dead', event => {
        if (event.job.queue !== queue || --left > 0) return
        stop()
        resolve(event.failure?.fingerprint as string)
      })
    })
    const payloads = Array.from({ length: count }, (_, nth) => ({
      payload: { cause, nth },
      options: tenant ? { tenant } : {},
    }))
    const worker = redrive.work([job], { concurrency: 5 })
    await redrive.enqueueMany(job, payloads)
    const id = await died
    await worker.stop()
    return id
  }

  it('a new cause is told of once, and is there for whoever looks', async () => {
    const told: string[] = []
    const stop = library.redrive.on('group.new', ({ title }) => told.push(title))
    const heard = library.next('group.new', ({ title }) => title.startsWith('Refused'))
    const id = await die('new', 'Refused', 20, library.redrive, 'acme')
    expect((await groups().list({ queue: 'new' })).items).toMatchObject([{ id, dead: { value: 20, exact: true } }])
    expect(await heard).toMatchObject({
      id,
      title: expect.stringMatching(/^Refused: order \d+ was not taken$/),
      version: '1.0',
    })
    const again = die('new', 'Refused', 5)
    await again
    stop()
    expect(told).toHaveLength(1)
    const group = await groups().get(id)
    expect(group).toMatchObject({
      kind: 'permanent',
      errorType: 'Refused',
      status: 'open',
      firstVersion: '1.0',
      priority: 5,
      queues: [{ value: 'new', count: 25 }],
      versions: [{ value: '1.0', count: 25 }],
      tenants: [{ value: 'acme', count: 20 }],
      members: [id],
    })
    expect(group.perMinute).toBeGreaterThan(1)
    expect(group.samples[0]?.stack).toContain('Refused: order')
    await expect(groups().get('v1:none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('is taken on and resolved; when it fails again it is regressed', async () => {
    const id = await die('regress', 'Gone', 2)
    const taken = await groups().update(id, { status: 'acknowledged', assignee: 'ada', notes: 'on it', priority: 8 })
    expect(taken).toMatchObject({ status: 'acknowledged', assignee: 'ada', notes: 'on it', priority: 8 })
    const resolved = await groups().update(
      id,
      { status: 'resolved' },
      { actor: 'ada', reason: 'fixed in 1.1', version: taken.version },
    )
    expect(resolved).toMatchObject({
      status: 'resolved',
      resolvedBy: 'ada',
      notes: 'on it',
      version: taken.version + 1,
    })
    await expect(groups().update(id, { priority: 1 }, { version: taken.version })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
      details: { id, version: resolved.version },
    })
    const back = library.next('group.regressed', event => event.id === id)
    await die('regress', 'Gone', 1)
    expect(await back).toMatchObject({ id, version: '1.0' })
    expect(await groups().get(id)).toMatchObject({ status: 'open', regressed: true, regressions: 1, assignee: 'ada' })
    expect((await groups().list({ regressed: true, assignee: 'ada' })).items.map(group => group.id)).toEqual([id])
    expect(
      (await library.audit('group', id)).map(({ actor, action, before, after }) => [actor, action, before, after]),
    ).toEqual([
      ['redrive', 'regress', { status: 'resolved' }, { status: 'open', version: '1.0' }],
      [
        'ada',
        'update',
        { status: 'acknowledged', assignee: 'ada', priority: 8, notes: 'on it' },
        { status: 'resolved' },
      ],
      [
        'library',
        'update',
        { status: 'open', assignee: null, priority: 5, notes: null },
        { status: 'acknowledged', assignee: 'ada', notes: 'on it', priority: 8 },
      ],
    ])
  })

  it('two causes are merged and split; dead letters are found by the group, and keep their fingerprints', async () => {
    const { deadLetters } = library.redrive.operator
    const [a, b] = [await die('merge', 'Gone', 2), await die('merge', 'Refused', 3)]
    expect(a).not.toBe(b)
    expect(await groups().merge(a, [b], { actor: 'ada' })).toMatchObject({ id: a, failures: 5, members: [a, b] })
    expect(await groups().get(b)).toMatchObject({ id: a })
    expect((await groups().list({ queue: 'merge' })).items.map(group => group.id)).toEqual([a])
    for (const group of [a, b]) expect((await deadLetters.list({ group })).items).toHaveLength(5)
    expect((await deadLetters.list({ fingerprint: b })).items).toHaveLength(3)
    expect((await deadLetters.list({ group: a, fingerprint: b })).total).toEqual({ value: 3, exact: true })
    expect((await deadLetters.list({ group: a, fingerprint: 'v1:none' })).items).toEqual([])
    expect(await deadLetters.preview({ group: a })).toBe(5)
    const pages: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page: Awaited<ReturnType<typeof deadLetters.list>> = await deadLetters.list(
        { group: a },
        { limit: 2, ...(cursor && { cursor }) },
      )
      pages.push(...page.items.map(letter => letter.fingerprint))
      cursor = page.nextCursor
    }
    expect(pages).toEqual([b, b, b, a, a])
    await expect(groups().merge(b, [a])).rejects.toThrow(`Group ${b} is merged into ${a}`)
    expect(await groups().split(b, { actor: 'ada' })).toMatchObject({ id: b, failures: 3, members: [b] })
    expect(await groups().get(a)).toMatchObject({ failures: 2, members: [a] })
    expect((await deadLetters.list({ group: a })).items).toHaveLength(2)
    await expect(groups().split(b)).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    expect((await library.audit('group', b)).map(({ action, actor }) => [action, actor])).toEqual([
      ['split', 'ada'],
      ['merge', 'ada'],
    ])
  })

  it('a job that waits for its next attempt is of the group it failed with', async () => {
    const job = defineJob({
      name: 'waits',
      queue: 'waits',
      retry: { minMs: 60_000 },
      handler: async () => {
        throw Object.assign(new Error('busy'), { status: 503 })
      },
    })
    const failed = library.next('job.failed', event => event.job.queue === 'waits')
    const worker = library.redrive.work([job])
    await library.redrive.enqueue(job, {}, { tenant: 'umbra' })
    const { fingerprint } = (await failed).failure
    await worker.stop()
    expect(await groups().get(fingerprint)).toMatchObject({
      retrying: { value: 1, exact: true },
      dead: { value: 0, exact: true },
      failures: 1,
      deaths: 0,
      tenants: [{ value: 'umbra', count: 1 }],
    })
  })

  it('a call in place that fails is of a group, too', async () => {
    const heard = library.next('group.new', ({ title }) => title.includes('in place'))
    const job = defineJob({
      name: 'in place',
      queue: 'in place',
      handler: async () => Promise.reject(new Gone('in place')),
    })
    await library.redrive.perform(job, {}).catch(() => {})
    expect(await groups().get((await heard).id)).toMatchObject({ failures: 1, deaths: 1 })
  })

  it.each([
    [/^status is "closed"/, () => groups().list({ status: 'closed' as 'open' })],
    [/^A filter is "statsu"/, () => groups().list({ statsu: 'open' } as object)],
    [/^kind is "odd"/, () => groups().list({ kind: 'odd' as 'lost' })],
    [/^sort is "name"/, () => groups().list({}, { sort: 'name' as 'failures' })],
    [/^limit is 0/, () => groups().list({}, { limit: 0 })],
    [/^cursor is "x"/, () => groups().list({}, { cursor: 'x' })],
    [/^A change is "empty"/, () => groups().update('v1:a', {})],
    [/^priority is 11/, () => groups().update('v1:a', { priority: 11 })],
    [/^A change is "note"/, () => groups().update('v1:a', { note: 'x' } as object)],
    [/^The groups to merge is "v1:a"/, () => groups().merge('v1:a', ['v1:a'])],
    [/^There is no group v1:a/, () => groups().merge('v1:a', ['v1:b'])],
    [/^id is "a/, () => groups().get('a\0b')],
  ])('%s', async (message, ask) => {
    await expect(ask()).rejects.toThrow(message)
  })

  it('counts are exact with several processes that fail at once', async () => {
    const { url } = library
    // An embedded database has one process.
    if (url === undefined) return
    const others = await Promise.all(
      ['2.0', '3.0'].map(version => openRedrive({ database: url, env: {}, logger: silent, pollMs: 100, version })),
    )
    const job = jobOf('fleet')
    let left = 300
    const all = new Promise<void>(resolve => {
      for (const redrive of [library.redrive, ...others])
        redrive.on('job.dead', ({ job }) => job.queue === 'fleet' && --left === 0 && resolve())
    })
    for (const redrive of [library.redrive, ...others]) redrive.work([job], { concurrency: 3 })
    await library.redrive.enqueueMany(
      job,
      Array.from({ length: 300 }, (_, nth) => ({
        payload: { cause: nth % 3 === 0 ? 'Gone' : 'Refused', nth } as const,
      })),
    )
    await all
    for (const redrive of others) await redrive.close()
    const seen = (await groups().list({ queue: 'fleet' }, { sort: 'failures' })).items
    const details = await Promise.all(seen.map(({ id }) => groups().get(id)))
    expect(details.map(({ dead, errorType }) => [errorType, dead.value])).toEqual([
      ['Refused', 200],
      ['Gone', 100],
    ])
    for (const { versions, dead } of details)
      expect(versions.reduce((sum, { count }) => sum + count, 0)).toBe(dead.value)
  })
})
