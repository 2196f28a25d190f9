// `npm run providers -- --demo`: providers that fail in interesting ways, jobs for them, and rules for what dies.
import type { Log, Redrive, TriageRuleDraft } from 'redrive'
import { QUEUE } from '../operation-job.js'
import type { ProviderApp } from '../provider-app.js'
import type { ProviderRequest } from '../request.js'
import { ensureRules } from '../triage-rules.js'
import { resourceGroups } from './resource-group.js'
import { crashing, flaky, forbidden, mistaken, withQuota } from './troubled.js'

const STARTS_AFTER_MS = 15_000
const JOB_EVERY_MS = 1_000

const RULES: readonly TriageRuleDraft[] = [
  {
    name: 'demo: gone already',
    match: { queue: QUEUE, text: 'is already gone' },
    action: { type: 'discard', reason: 'what was to be deleted is not there' },
  },
]

/** Registers the providers and submits a job a second. Returns how to stop. */
export async function runDemo(app: ProviderApp, redrive: Redrive, log: Log): Promise<() => void> {
  const { registry } = app.worker
  const desk = app.desk(redrive)
  await ensureRules(redrive, RULES)
  registry.register('ITL.Network/Gateway', flaky)
  registry.register('ITL.Compute/Machine', withQuota())
  registry.register('ITL.Vault/Secret', forbidden)
  registry.register('ITL.Legacy/Appliance', { ...crashing, ...mistaken })
  const starting = setTimeout(() => {
    registry.register('ITL.Core/ResourceGroup', resourceGroups())
    log.info('a provider has started', { provider: 'ITL.Core/ResourceGroup' })
  }, STARTS_AFTER_MS)
  let nth = 0
  const submitting = setInterval(() => {
    nth += 1
    desk.submit(requestOf(nth)).catch(error => log.warn('could not submit', { error: (error as Error).message }))
  }, JOB_EVERY_MS)
  return () => {
    clearTimeout(starting)
    clearInterval(submitting)
  }
}

/** One after the other, so that all of them are seen. */
const REQUESTS: readonly ((name: string) => ProviderRequest)[] = [
  name => ({
    provider: 'ITL.Core',
    resourceType: 'ResourceGroup',
    operation: 'create',
    request: { name, location: 'westeurope' },
  }),
  name => ({ provider: 'ITL.Core', resourceType: 'ResourceGroup', operation: 'create', request: { name } }),
  () => ({ provider: 'ITL.Network', resourceType: 'Gateway', operation: 'create', priority: 8 }),
  () => ({ provider: 'ITL.Compute', resourceType: 'Machine', operation: 'create', priority: 2 }),
  name => ({ provider: 'ITL.Core', resourceType: 'ResourceGroup', operation: 'delete', request: { name } }),
  () => ({ provider: 'ITL.Vault', resourceType: 'Secret', operation: 'get' }),
  () => ({ provider: 'ITL.Compute', resourceType: 'Machine', operation: 'create' }),
  () => ({ provider: 'ITL.Legacy', resourceType: 'Appliance', operation: 'create' }),
  () => ({ provider: 'ITL.Legacy', resourceType: 'Appliance', operation: 'update' }),
  () => ({ provider: 'ITL.Vault', resourceType: 'Secret', operation: 'explode' }),
]

export const requestOf = (nth: number): ProviderRequest =>
  (REQUESTS[nth % REQUESTS.length] as (name: string) => ProviderRequest)(`group-${nth}`)
