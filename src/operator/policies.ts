// Policies at run time: what holds for a queue or a job name and who said so, changed by a person while workers run.
// Every change is a new version, checked, audited, and followed by running workers within seconds.
import { invalid, RedriveError } from '../domain/errors.js'
import { checkName } from '../domain/names.js'
import type { Policy, PolicyOverride } from '../domain/policy.js'
import { writeAudit } from '../ledger/audit.js'
import type { Queryable } from '../ledger/database.js'
import { jobType } from '../ledger/job-type.js'
import {
  newestPolicies,
  type PolicyTarget,
  type PolicyVersion,
  policyHistory,
  setPolicy,
  VERSIONS_KEPT,
} from '../ledger/policy.js'
import { parsePolicy, policyAsJson } from '../policy/effective.js'
import {
  askedFor,
  layeredPolicy,
  type PolicyLayers,
  type PolicySources,
  parseStoredPolicy,
  policySources,
} from '../policy/policy-layers.js'
import { type Acting, actorOf, type Desk } from './context.js'

/** Whose policy: a queue's, or that of a job name, in whatever queue it runs. */
export type PolicyOf =
  | { readonly queue: string; readonly job?: never }
  | { readonly job: string; readonly queue?: never }

/** Of what the effective policy is asked: a queue, a job name, or a job name in its queue. */
export interface PolicyQuestion {
  readonly queue?: string
  readonly job?: string
  /** What the enqueuer asked for (`maxAttempts` of a job). */
  readonly maxAttempts?: number
}

export interface PolicyAnswer {
  /** What holds, every setting. */
  readonly policy: Policy
  /** Where each setting comes from. */
  readonly sources: PolicySources
  /** Each voice that was heard, as it was said. */
  readonly layers: PolicyLayers
  /** The versions set at run time: 0 where there never was one. Give it back as `expectedVersion`. */
  readonly versions: { readonly queue: number; readonly job: number }
  /** The run-time policies themselves, as they were last set or taken away. */
  readonly set: { readonly queue?: PolicyVersion; readonly job?: PolicyVersion }
}

export interface PolicyActing extends Acting {
  /** Change it only if this version holds now; 0: only if there never was one. */
  readonly expectedVersion?: number
}

const TRIES = 10

/** `settings`: what this process says for jobs that say nothing themselves. */
export function policies({ db }: Desk, settings: PolicyOverride) {
  const change = async (of: PolicyOf, policy: PolicyOverride | null, acting: PolicyActing): Promise<PolicyVersion> => {
    const target = targetOf(of)
    const { reason, expectedVersion } = acting
    checkVersion(expectedVersion)
    const stored = policy === null ? null : policyAsJson(parseStoredPolicy(policy, nameOf(target)))
    return db.transaction(async tx => {
      let was: PolicyVersion | undefined
      let made: PolicyVersion | undefined
      // Who expects no version wants to be the last: whoever was faster is followed by this change.
      for (let tries = 0; !made && tries < (expectedVersion === undefined ? TRIES : 1); tries += 1) {
        ;[was] = await newestPolicies(tx, [target])
        // Only upon the version that was read: the audit says what this change replaced.
        const upon = expectedVersion ?? was?.version ?? 0
        made = await setPolicy(tx, target, { policy: stored, setBy: actorOf(acting), reason, expectedVersion: upon })
      }
      if (!made) throw await conflict(tx, target, expectedVersion)
      await writeAudit(tx, {
        actor: actorOf(acting),
        action: stored === null ? 'remove policy' : 'set policy',
        targetType: target.scope === 'queue' ? 'queue' : 'job_name',
        target: target.target,
        before: was?.policy ?? null,
        after: stored,
        ...(reason !== undefined && { reason }),
      })
      return made
    })
  }

  return {
    /** What holds, and where each setting comes from. */
    get: async (question: PolicyQuestion): Promise<PolicyAnswer> => effectiveFor(db, settings, checkQuestion(question)),

    /** Overrides, at run time, what the code says. What is left out stays as the code has it. */
    set: (of: PolicyOf, policy: PolicyOverride, acting: PolicyActing = {}): Promise<PolicyVersion> =>
      change(of, policy, acting),

    /** Takes the override away: what the code says holds again. */
    remove: (of: PolicyOf, acting: PolicyActing = {}): Promise<PolicyVersion> => change(of, null, acting),

    /** Who set what, when and why, newest first; the last 100 versions. */
    history: async (of: PolicyOf): Promise<PolicyVersion[]> => policyHistory(db, targetOf(of), VERSIONS_KEPT),

    /** All that are set now. */
    list: async (): Promise<PolicyVersion[]> => (await newestPolicies(db)).filter(({ policy }) => policy !== null),
  }
}

export type Policies = ReturnType<typeof policies>

/** By what its workers announced; where none did, by the settings of this process. */
export async function effectiveFor(
  db: Queryable,
  settings: PolicyOverride,
  { queue, job, maxAttempts }: PolicyQuestion,
): Promise<PolicyAnswer> {
  const targets: PolicyTarget[] = []
  if (queue !== undefined) targets.push({ scope: 'queue', target: queue })
  if (job !== undefined) targets.push({ scope: 'job', target: job })
  const found = await newestPolicies(db, targets)
  const type = job === undefined ? undefined : await jobType(db, job, queue)
  const ofQueue = found.find(({ scope }) => scope === 'queue')
  const ofJob = found.find(({ scope }) => scope === 'job')
  const said = (version: PolicyVersion | undefined) =>
    version?.policy ? parsePolicy(version.policy, nameOf(version)) : undefined
  const layers = without({
    settings: type ? parsePolicy(type.settings, `settings of the workers of job ${job}`) : settings,
    definition: type && parsePolicy(type.policy, `announced policy of job ${job}`),
    enqueue: askedFor(maxAttempts),
    queue: said(ofQueue),
    job: said(ofJob),
  })
  return {
    policy: layeredPolicy(layers),
    sources: policySources(layers),
    layers,
    versions: { queue: ofQueue?.version ?? 0, job: ofJob?.version ?? 0 },
    set: { ...(ofQueue && { queue: ofQueue }), ...(ofJob && { job: ofJob }) },
  }
}

const without = (layers: PolicyLayers): PolicyLayers =>
  Object.fromEntries(Object.entries(layers).filter(([, layer]) => layer !== undefined))

const nameOf = ({ scope, target }: PolicyTarget): string => `policy of ${scope} ${target}`

function targetOf({ queue, job }: PolicyOf): PolicyTarget {
  if ((queue === undefined) === (job === undefined)) {
    throw invalid('A policy', queue === undefined ? 'of nothing' : 'of both', 'of a queue or of a job name')
  }
  if (queue !== undefined) checkName('queue', queue)
  if (job !== undefined) checkName('job', job)
  return queue !== undefined ? { scope: 'queue', target: queue } : { scope: 'job', target: job as string }
}

function checkQuestion({ queue, job, maxAttempts }: PolicyQuestion): PolicyQuestion {
  if (queue === undefined && job === undefined) throw invalid('A policy', 'of nothing', 'of a queue or of a job name')
  if (queue !== undefined) checkName('queue', queue)
  if (job !== undefined) checkName('job', job)
  if (maxAttempts !== undefined) parsePolicy({ attempts: maxAttempts }, 'what the enqueuer asked for')
  return {
    ...(queue !== undefined && { queue }),
    ...(job !== undefined && { job }),
    ...(maxAttempts !== undefined && { maxAttempts }),
  }
}

function checkVersion(version: unknown): void {
  if (version !== undefined && !(Number.isInteger(version) && Number(version) >= 0 && Number(version) < 2 ** 31)) {
    throw invalid('expectedVersion', version, 'the version that was read, 0 for none')
  }
}

async function conflict(db: Queryable, target: PolicyTarget, expected: number | undefined): Promise<RedriveError> {
  const [now] = await newestPolicies(db, [target])
  const version = now?.version ?? 0
  const message =
    expected === undefined
      ? `The ${nameOf(target)} kept changing while it was to be set; it is at version ${version}`
      : `The ${nameOf(target)} is at version ${version}, not ${expected}; read it again and decide anew`
  return new RedriveError('VERSION_CONFLICT', message, { details: { ...target, version, expectedVersion: expected } })
}
