// Triage rules as people write them: checked, versioned and audited; run by recovery and on demand; what they did is told.
import { describe, expect, it } from 'vitest'
import { defineJob, PermanentError } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('triage on $name', ({ kind }) => {
  let library: Library
  const lines: [object, string][] = []
  beforeFirst(async () => {
    const info = (fields: object, message: string) => void lines.push([fields, message])
    library = await openLibrary(kind, { logger: { debug() {}, info, warn() {}, error() {} } })
  })
  const triage = () => library.redrive.operator.triage

  async function dead(queue: string): Promise<string> {
    const job = defineJob({ name: queue, queue, handler: async () => Promise.reject(new PermanentError('no')) })
    await library.redrive.perform(job, {}).catch(() => {})
    const [letter] = (await library.redrive.operator.deadLetters.list({ queue })).items
    return letter?.id as string
  }

  it('rules are made, changed and removed, each change audited; a version that is not the one seen changes nothing', async () => {
    const draft = { name: 'r', match: { queue: 'q' }, action: { type: 'assign', to: 'ada' } } as const
    expect(await triage().create(draft, { actor: 'bob' })).toMatchObject({
      ...draft,
      version: 1,
      enabled: true,
      createdBy: 'bob',
    })
    await expect(triage().create(draft)).rejects.toThrow(/^name is "r"; it must be one that no rule has/)
    await expect(triage().create({ ...draft, name: 's', match: {} })).rejects.toThrow(/^match is "empty"/)
    const changed = await triage().update('r', { position: 7, enabled: false }, { version: 1, reason: 'too eager' })
    expect(changed).toMatchObject({ ...draft, position: 7, enabled: false, version: 2, updatedBy: 'library' })
    await expect(triage().update('r', { position: 8 }, { version: 1 })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
    })
    await expect(triage().update('none', {})).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(triage().remove('r', { version: 1 })).rejects.toMatchObject({ code: 'VERSION_CONFLICT' })
    expect((await triage().list()).map(({ name }) => name)).toEqual(['r'])
    await triage().remove('r')
    expect(await triage().list()).toEqual([])
    await expect(triage().remove('r')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(
      (await library.audit('triage_rule', 'r')).map(({ action, actor, reason }) => [action, actor, reason]),
    ).toEqual([
      ['remove', 'library', undefined],
      ['update', 'library', 'too eager'],
      ['create', 'bob', undefined],
    ])
  })

  it('run on demand: first tried, then done, and a discard leaves a line in the log', async () => {
    const id = await dead('discards')
    const action = { type: 'discard', reason: 'the customer is gone' } as const
    await triage().create({ name: 'gone', match: { queue: 'discards' }, action, enabled: false })
    expect((await triage().run({ dryRun: true })).rules).toEqual([])
    expect(await triage().run({ dryRun: true, rule: 'gone' })).toMatchObject({
      rules: [{ acted: 1, sample: [{ id }] }],
    })
    await expect(triage().run({ rule: 'gone' })).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    expect((await library.redrive.operator.deadLetters.get(id)).status).toBe('pending')
    await triage().update('gone', { enabled: true })
    const told = library.next('triage.acted')
    expect(await triage().run()).toMatchObject({
      dryRun: false,
      rules: [{ rule: 'gone', action: 'discard', acted: 1 }],
    })
    expect(await told).toEqual({ rule: 'gone', action, letters: [id] })
    expect(await library.redrive.operator.deadLetters.get(id)).toMatchObject({
      status: 'permanently_failed',
      resolution: 'the customer is gone',
    })
    expect(lines).toContainEqual([
      { rule: 'gone', letters: [id], reason: 'the customer is gone' },
      'discarded by a triage rule',
    ])
    await triage().remove('gone')
  })

  it('run by recovery: a letter is sent back and recovers; another one is escalated', async () => {
    const [sent, called] = [await dead('sent'), await dead('called')]
    await triage().create({ name: 'send', match: { queue: 'sent' }, action: { type: 'retry', afterMs: 0 } })
    await triage().create({ name: 'call', match: { queue: 'called' }, action: { type: 'escalate', message: 'look' } })
    const escalated = library.next('triage.escalated')
    expect(await library.redrive.recover()).toMatchObject({ triaged: 2 })
    expect(await escalated).toMatchObject({
      rule: 'call',
      message: 'look',
      letters: [{ id: called, queue: 'called', kind: 'permanent', error: 'no' }],
    })
    const done = library.next('job.completed', ({ job }) => job.id === sent)
    const worker = library.redrive.work([defineJob({ name: 'sent', queue: 'sent', handler: async () => null })])
    await done
    await worker.stop()
    expect((await library.redrive.operator.deadLetters.get(sent)).status).toBe('recovered')
    expect(await library.audit('dead_letter', sent)).toMatchObject([
      { actor: 'triage rule send', action: 'triage retry' },
    ])
    expect((await triage().run()).rules.map(({ acted }) => acted)).toEqual([0, 0])
  })
})
