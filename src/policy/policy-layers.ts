// Who has a say in how a job is retried, in the order in which they are heard, and which of them said what. The runtime
// decides by this order and the operator explains by it: there is no other.
import { invalid } from '../domain/errors.js'
import { KINDS, type Kind } from '../domain/failure.js'
import type { Policy, PolicyOverride } from '../domain/policy.js'
import { statedMaxMs } from './backoff.js'
import { effectivePolicy, parsePolicy } from './effective.js'

/** `enqueue`: what the definition said in the process that enqueued the job. `queue` and `job`: set at run time. */
export const POLICY_SOURCES = ['default', 'settings', 'definition', 'enqueue', 'queue', 'job'] as const
export type PolicySource = (typeof POLICY_SOURCES)[number]

type Sayer = Exclude<PolicySource, 'default'>
export type PolicyLayers = { readonly [Source in Sayer]?: PolicyOverride | undefined }

/** What the enqueuer asked for, as a layer. */
export const askedFor = (maxAttempts: number | undefined): PolicyOverride | undefined =>
  maxAttempts === undefined ? undefined : { attempts: maxAttempts }

const SAYERS = POLICY_SOURCES.filter(source => source !== 'default')

/** `start`: beaten by every layer. */
export const layeredPolicy = (layers: PolicyLayers, start?: PolicyOverride): Policy =>
  effectivePolicy(start, ...SAYERS.map(source => layers[source]))

export type PolicySources = { readonly [Key in Exclude<keyof Policy, 'retryKinds'>]: PolicySource } & {
  readonly retryKinds: Readonly<Record<Kind, PolicySource>>
}

/** The last one who said each setting. */
export function policySources(layers: PolicyLayers): PolicySources {
  const said = (says: (layer: PolicyOverride) => boolean): PolicySource =>
    SAYERS.findLast(source => says(layers[source] ?? {})) ?? 'default'
  const { maxMs } = layeredPolicy(layers)
  const has = (key: keyof Policy) => said(layer => layer[key] !== undefined)
  return {
    attempts: has('attempts'),
    backoff: has('backoff'),
    jitter: has('jitter'),
    minMs: has('minMs'),
    // A backoff that names a longer delay raises the maximum, unless a maximum is said with it.
    maxMs: said(layer => (layer.maxMs ?? (layer.backoff && statedMaxMs(layer.backoff))) === maxMs),
    totalMs: has('totalMs'),
    timeoutMs: has('timeoutMs'),
    deadLetter: has('deadLetter'),
    lostLimit: has('lostLimit'),
    retryKinds: Object.fromEntries(
      KINDS.map(kind => [kind, said(layer => layer.retryKinds?.[kind] !== undefined)]),
    ) as Record<Kind, PolicySource>,
  }
}

/** Checks a policy that is to be stored: what only code can say, and what contradicts itself, is refused. */
export function parseStoredPolicy(value: unknown, where: string): PolicyOverride {
  const policy = parsePolicy(value, where)
  if (policy.backoff?.type === 'custom') {
    throw invalid(`${where}.backoff`, 'custom', 'one without a function: only code can hold one')
  }
  const { minMs, maxMs } = policy
  if (minMs !== undefined && maxMs !== undefined && minMs > maxMs) {
    throw invalid(`${where}.minMs`, minMs, `at most maxMs (${maxMs})`)
  }
  return policy
}
