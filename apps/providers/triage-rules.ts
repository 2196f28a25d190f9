// What happens to dead letters of provider jobs without a person: made at the start where they are missing, run by
// recovery on its schedule, logged by the library. From then on they belong to the people: what they changed or switched off
// stays so.
import type { Redrive, TriageRuleDraft } from 'redrive'
import { QUEUE } from './operation-job.js'

const PREFIX = 'providers: '
const WAIT_FOR_PROVIDER_MS = 60_000

export const DEFAULT_RULES: readonly TriageRuleDraft[] = [
  {
    name: `${PREFIX}not there yet`,
    match: { queue: QUEUE, text: 'No provider found for ' },
    action: { type: 'retry', afterMs: WAIT_FOR_PROVIDER_MS },
    position: 10,
  },
  {
    name: `${PREFIX}still not there`,
    match: { queue: QUEUE, text: 'No provider found for ' },
    action: {
      type: 'escalate',
      message: 'A provider is missing, and waiting for it did not help: is its worker running?',
    },
    position: 20,
  },
  {
    name: `${PREFIX}not allowed`,
    match: { queue: QUEUE, kind: 'authentication' },
    action: { type: 'escalate', message: 'A provider was refused: somebody has to grant it access, then resubmit' },
    position: 30,
  },
]

export async function ensureRules(redrive: Redrive, rules: readonly TriageRuleDraft[]): Promise<void> {
  const { triage } = redrive.operator
  const known = async () => new Set((await triage.list()).map(({ name }) => name))
  const before = await known()
  for (const rule of rules) {
    if (before.has(rule.name)) continue
    try {
      await triage.create(rule, { actor: 'provider worker' })
    } catch (error) {
      // Another worker that starts at the same time was faster.
      if (!(await known()).has(rule.name)) throw error
    }
  }
}
