// What happens without a person: rules are made once, wait for a provider, then call somebody; a person's changes stay.
import { expect, it } from 'vitest'
import { DEFAULT_RULES, ensureRules } from '../../../apps/providers/triage-rules.js'
import type { TriageRuleDraft } from '../../../src/index.js'
import { beforeFirst } from '../../support/databases.js'
import { until } from '../../support/until.js'
import { openScene, type Scene } from './support/scene.js'

const logged: Record<string, unknown>[] = []
const logger = {
  debug() {},
  info: (fields: Record<string, unknown>) => void logged.push(fields),
  warn() {},
  error() {},
}
/** For a machine that is busy with other things. */
const LONG = 120_000
let scene: Scene
beforeFirst(async () => {
  scene = await openScene({}, { kind: 'server', env: { MAX_RETRY_ATTEMPTS: '1' }, logger })
})
const ask = (resourceType: string) => ({ provider: 'ITL.Test', resourceType, operation: 'get' })
const failing = (message: string, status: number) => ({
  get: () => Promise.reject(Object.assign(new Error(message), { status })),
})

it('dead letters of a missing provider are retried after a wait; who is refused is told of, once', {
  timeout: LONG,
}, async () => {
  const { triage } = scene.redrive.operator
  const lines: string[] = []
  scene.redrive.on('triage.escalated', ({ message }) => void lines.push(message))
  scene.worker.registry.register('ITL.Test/Vault', failing('no role', 403))
  const late = await scene.died(ask('Late'))
  await scene.died(ask('Vault'))
  scene.worker.registry.register('ITL.Test/Late', { get: () => 'here' })
  // The wait is a minute; a person may think otherwise.
  await triage.update('providers: not there yet', { action: { type: 'retry', afterMs: 0 } }, { actor: 'ada' })
  // The run that every start begins with may have the letter just then: it is the next one's in that case.
  await until('the rules send it back', async () => {
    await triage.run()
    return (await scene.redrive.operator.deadLetters.get(late.id)).status !== 'pending'
  })
  await scene.next('job.completed', late.id)
  expect(lines).toEqual(['A provider was refused: somebody has to grant it access, then resubmit'])
  await triage.run()
  expect(lines).toHaveLength(1)
})

it('rules are made where they are missing, and are then left as people have them', { timeout: LONG }, async () => {
  const { triage } = scene.redrive.operator
  const rule = (name: string): TriageRuleDraft => ({
    name,
    match: { text: 'nothing' },
    action: { type: 'assign', to: 'x' },
  })
  const rules = [rule('one'), rule('two')]
  await ensureRules(scene.redrive, rules)
  await triage.update('one', { enabled: false }, { actor: 'ada' })
  await triage.remove('two')
  // Two workers that start at the same time.
  await Promise.all([ensureRules(scene.redrive, rules), ensureRules(scene.redrive, rules)])
  const now = await triage.list()
  const ours = [...DEFAULT_RULES, ...rules].map(({ name }) => name).sort()
  expect(
    now
      .map(({ name }) => name)
      .filter(name => ours.includes(name))
      .sort(),
  ).toEqual(ours)
  expect(now.find(({ name }) => name === 'one')?.enabled).toBe(false)
})

it('a rule discards, with a line in the log', { timeout: LONG }, async () => {
  scene.worker.registry.register('ITL.Test/Gone', failing('already gone', 404))
  const reason = 'nothing to delete'
  await ensureRules(scene.redrive, [
    { name: 'gone', match: { text: 'already gone' }, action: { type: 'discard', reason } },
  ])
  const { id } = await scene.died(ask('Gone'))
  await scene.redrive.operator.triage.run()
  expect(logged).toContainEqual({ rule: 'gone', letters: [id], reason })
  expect((await scene.redrive.operator.deadLetters.get(id)).status).toBe('permanently_failed')
})
