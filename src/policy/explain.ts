// Where a job is and why, in sentences that a person understands at 3 a.m. Pure: each sentence follows from the evidence
// alone, and from nothing that the evidence does not show.
import type { BreakerState } from '../domain/breaker.js'
import type { DecisionType } from '../domain/decision.js'
import type { Kind } from '../domain/failure.js'
import type { RecoveryStatus, State } from '../domain/lifecycle.js'
import type { OutcomeType } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { PolicySource, PolicySources } from './policy-layers.js'
import { count, counted, duration, times } from './say.js'

/** Times are milliseconds of the database's clock. */
export interface JobEvidence {
  readonly now: number
  readonly job: {
    readonly state: State
    readonly queue: string
    readonly name: string
    readonly attempt: number
    readonly lost: number
    readonly redrives: number
    readonly createdAt: number
    readonly runAt?: number
    readonly claimedAt?: number
    readonly finishedAt?: number
    readonly reason?: string
    readonly service?: string
    readonly cancelRequested?: boolean
  }
  readonly policy: Policy
  readonly sources: PolicySources
  /** The policies set at run time that are heard. */
  readonly set: {
    readonly [Scope in 'queue' | 'job']?: { readonly version: number; readonly by: string; readonly at: number }
  }
  /** The last attempt on record. */
  readonly last?: AttemptEvidence
  /** The last one that failed. */
  readonly failure?: AttemptEvidence & { readonly kind: Kind }
  readonly paused?: { readonly by: string; readonly at: number }
  readonly workers: number
  readonly known: boolean
  readonly ahead: number
  readonly aheadUpTo: number
  readonly running?: { readonly worker: string; readonly leaseEndsAt: number; readonly ended: boolean }
  readonly rateLimit?: { readonly name: string; readonly key: string }
  readonly breaker?: {
    readonly service: string
    readonly state: BreakerState
    readonly since: number
    readonly openUntil: number | null
    readonly reason: string
    readonly by: string
    /** It lets jobs through: closed for good, or only a shadow. */
    readonly free: boolean
  }
  readonly deadLetter?: { readonly status: RecoveryStatus; readonly assignedTo?: string; readonly resolution?: string }
}

export interface AttemptEvidence {
  readonly number: number
  readonly outcome: OutcomeType
  readonly decision: DecisionType
  readonly reason: string
  readonly at: number
  readonly kind?: Kind
  readonly because?: string
  readonly message?: string
}

/** What holds a job up, if anything does. */
export type Obstacle = 'paused' | 'breaker' | 'budget' | 'rate_limit' | 'no_worker' | 'unknown_job' | 'lease_over'

export interface Next {
  /** What happens next to the job. */
  readonly what: 'run' | 'retry' | 'look_again' | 'finish' | 'rescue' | 'cancel' | 'decide' | 'nothing'
  /** When, if that is known. */
  readonly at?: number
}

export interface Explained {
  readonly sentences: readonly string[]
  readonly obstacle: Obstacle | undefined
  readonly next: Next
}

export function explain(evidence: JobEvidence): Explained {
  const live = evidence.job.finishedAt === undefined
  const obstacle = live ? obstacleOf(evidence) : undefined
  const next = nextOf(evidence, obstacle)
  const sentences = [
    placeOf(evidence),
    obstacle && OBSTACLES[obstacle](evidence),
    lineOf(evidence, obstacle),
    failureOf(evidence),
    live ? attemptsOf(evidence) : undefined,
    live ? kindOf(evidence) : undefined,
    changedOf(evidence),
    lossesOf(evidence),
    evidence.job.redrives > 0 ? `It came back from the dead ${times(evidence.job.redrives)}.` : undefined,
    nextWords(evidence, obstacle, next),
  ]
  return { sentences: sentences.filter(sentence => sentence !== undefined), obstacle, next }
}

/** Of an id that nothing is known of. `madeAt`: the time its id carries. `removed`: what the audit says. */
export function explainUnknown(
  id: string,
  { madeAt, removed, now }: { madeAt?: number; removed?: { by: string; at: number; action: string }; now: number },
): readonly string[] {
  const sentences = [`There is no job ${id} in this ledger.`]
  if (removed)
    return [...sentences, `The audit has an action on it: ${removed.action} by ${removed.by}, ${ago(removed.at, now)}.`]
  if (madeAt !== undefined && madeAt <= now + 60_000) sentences.push(`Its id was made ${ago(madeAt, now)}.`)
  return [
    ...sentences,
    'Either it never was here, or the transaction that enqueued it has not committed, or it ended so long ago that retention removed it.',
  ]
}

function obstacleOf(evidence: JobEvidence): Obstacle | undefined {
  const { job, paused, breaker, workers, known, running, rateLimit, last, now } = evidence
  if (job.state === 'active') return running && (running.ended || running.leaseEndsAt <= now) ? 'lease_over' : undefined
  if (paused) return 'paused'
  if (job.state === 'held') {
    if (rateLimit) return 'rate_limit'
    // A hold by the breaker gives its attempt back; one by the budget does not.
    return last && last.kind !== undefined && last.number <= job.attempt ? 'budget' : 'breaker'
  }
  if (breaker && !breaker.free) return 'breaker'
  if (workers === 0) return 'no_worker'
  return known ? undefined : 'unknown_job'
}

function placeOf({ job, now, running, policy, last, deadLetter }: JobEvidence): string {
  const { queue, name, runAt = now, claimedAt = now, finishedAt = now } = job
  const it = `Job ${name} of queue ${queue}`
  switch (job.state) {
    case 'scheduled':
      return last?.decision === 'return'
        ? `${it} was given back (${last.reason}) and is to run ${when(runAt, now)}.`
        : `${it} is scheduled to run ${when(runAt, now)}.`
    case 'waiting':
      return `${it} has been waiting for a worker for ${duration(now - runAt)}.`
    case 'active': {
      const who = running ? `worker ${running.worker}` : 'a worker'
      return `${it} is being run by ${who}: attempt ${job.attempt} of ${policy.attempts}, since ${duration(now - claimedAt)}.`
    }
    case 'retrying':
      return `${it} failed and is to be tried again ${when(runAt, now)}.`
    case 'held':
      return `${it} is held: it is set aside, and is looked at again ${when(runAt, now)}.`
    case 'completed':
      return `${it} completed ${ago(finishedAt, now)}, on attempt ${job.attempt}.`
    case 'cancelled':
      return `${it} was cancelled ${ago(finishedAt, now)}: ${ended(job.reason)}`
    case 'dead': {
      const closed =
        deadLetter?.status === 'permanently_failed' ? ` It was closed for good: ${ended(deadLetter.resolution)}` : ''
      return `${it} died ${ago(finishedAt, now)}: ${ended(job.reason)}${closed}`
    }
  }
}

const OBSTACLES: Readonly<Record<Obstacle, (evidence: JobEvidence) => string>> = {
  paused: ({ job, paused, now }) =>
    `Queue ${job.queue} was paused by ${paused?.by ?? 'somebody'} ${ago(paused?.at ?? now, now)}: none of its jobs starts until somebody resumes it.`,
  breaker: evidence => breakerWords(evidence),
  budget: ({ last }) => `Too many retries of its service are under way: ${ended(last?.reason)}`,
  rate_limit: ({ rateLimit }) => {
    const key = rateLimit?.key ? ` for ${rateLimit.key}` : ''
    return `Its rate limit ${rateLimit?.name}${key} is used up, and it keeps its place until its turn comes.`
  },
  no_worker: ({ job }) => `No worker that is alive takes jobs from queue ${job.queue}, so nobody can run it.`,
  unknown_job: ({ job }) =>
    `Workers take jobs from queue ${job.queue}, but none ever announced a job named ${job.name}: is the name right, and its code deployed?`,
  lease_over: ({ running, now }) =>
    `That worker ${running?.ended ? 'is gone' : `has not shown life since its lease ended ${ago(running?.leaseEndsAt ?? now, now)}`}: recovery takes the job over within seconds.`,
}

function breakerWords({ breaker, last, now }: JobEvidence): string {
  if (!breaker || breaker.free) return `When it was held: ${ended(last?.reason)}`
  const { service, since, reason, by, openUntil } = breaker
  const why = ended(reason)
  switch (breaker.state) {
    case 'isolated':
      return `Its service ${service} was isolated by ${by} ${ago(since, now)}: ${why} Its jobs are held until somebody releases it.`
    case 'half_open':
      return `Its service ${service} is being tried out by a few other jobs, since ${duration(now - since)}; if they succeed, the rest follows.`
    case 'closed':
      return `Its service ${service} came back ${ago(since, now)}, and the jobs that were held are let go little by little.`
    case 'open': {
      const tried = openUntil === null ? '' : ` The first jobs try it ${when(openUntil, now)}.`
      return `Its service ${service} is down, and its breaker has been open for ${duration(now - since)}: ${why}${tried}`
    }
  }
}

function lineOf({ job, ahead, aheadUpTo }: JobEvidence, obstacle: Obstacle | undefined): string | undefined {
  if (job.state !== 'waiting' || obstacle !== undefined) return undefined
  if (ahead === 0) return 'No job of its name is ahead of it.'
  const many = ahead >= aheadUpTo ? `${count(aheadUpTo)} jobs or more` : counted(ahead, 'job')
  return `${many} of its name ${ahead === 1 ? 'is' : 'are'} ahead of it.`
}

function failureOf({ failure, now }: JobEvidence): string | undefined {
  if (!failure) return undefined
  const { number, kind, because, at, message, outcome } = failure
  const verb = { timed_out: 'took too long', lost: 'was lost with its worker' }[outcome as string] ?? 'failed'
  const said = message ? `: "${shortened(message)}"` : ''
  return `Attempt ${number} ${verb} ${ago(at, now)}${said}; that is ${kind}, because ${because ?? 'of nothing known'}.`
}

function attemptsOf(evidence: JobEvidence): string {
  const { job, policy, sources } = evidence
  const left = Math.max(0, policy.attempts - job.attempt)
  const made = job.attempt === 0 ? 'none is made' : `${count(job.attempt)} ${job.attempt === 1 ? 'is' : 'are'} made`
  return `It may have ${counted(policy.attempts, 'attempt')}, says ${voice(sources.attempts, evidence)}: ${made}, ${count(left)} left.`
}

function kindOf(evidence: JobEvidence): string | undefined {
  const { failure, policy, sources } = evidence
  if (!failure) return undefined
  const { kind } = failure
  const says = `says ${voice(sources.retryKinds[kind], evidence)}`
  return policy.retryKinds[kind]
    ? `Failures of kind ${kind} are retried, ${says}.`
    : `Failures of kind ${kind} are not retried, ${says}.`
}

function changedOf({ failure, set, now, job }: JobEvidence): string | undefined {
  if (!failure || job.finishedAt !== undefined) return undefined
  const later = Object.values(set).filter(({ at }) => at > failure.at)
  const last = later.sort((a, b) => b.at - a.at)[0]
  return (
    last &&
    `The policy was changed by ${last.by} ${ago(last.at, now)}, after that failure: it holds from the next attempt on.`
  )
}

function lossesOf({ job, policy }: JobEvidence): string | undefined {
  if (job.lost === 0) return undefined
  const limit = job.finishedAt === undefined ? `; after ${times(policy.lostLimit)} it is buried as poison` : ''
  return `Its worker died ${times(job.lost)} while it ran${limit}.`
}

function nextOf({ job, running, policy, breaker, now }: JobEvidence, obstacle: Obstacle | undefined): Next {
  if (job.cancelRequested) return { what: 'cancel' }
  const runAt = job.runAt === undefined ? {} : { at: job.runAt }
  switch (job.state) {
    case 'completed':
    case 'cancelled':
      return { what: 'nothing' }
    case 'dead':
      return { what: 'decide' }
    case 'active':
      if (obstacle === 'lease_over') return { what: 'rescue', at: Math.max(now, running?.leaseEndsAt ?? now) }
      return { what: 'finish', at: (job.claimedAt ?? now) + policy.timeoutMs }
    case 'held':
      return { what: 'look_again', ...runAt }
    case 'retrying':
      return { what: 'retry', ...runAt }
    case 'scheduled':
      return { what: 'run', ...runAt }
    case 'waiting':
      if (obstacle === 'breaker' && breaker?.openUntil) return { what: 'run', at: breaker.openUntil }
      return obstacle === undefined ? { what: 'run', at: now } : { what: 'run' }
  }
}

function nextWords(evidence: JobEvidence, obstacle: Obstacle | undefined, { what, at }: Next): string | undefined {
  const { job, now, deadLetter, policy } = evidence
  const attempt = `attempt ${job.attempt + 1} of ${policy.attempts}`
  switch (what) {
    case 'cancel':
      return `Next: it is cancelled, as asked${job.reason ? ` (${job.reason})` : ''}; its worker hears of it within seconds.`
    case 'nothing':
      return undefined
    case 'decide': {
      if (deadLetter?.status === 'permanently_failed') return undefined
      const who = deadLetter?.assignedTo ? `, and is assigned to ${deadLetter.assignedTo}` : ''
      return `Next: a person decides; it does not run again by itself${who}.`
    }
    case 'finish':
      return `Next: it ends, or is timed out ${when(at ?? now, now)}.`
    case 'rescue':
      return 'Next: recovery decides what becomes of it, as after any failure.'
    case 'look_again':
      if (obstacle === 'rate_limit')
        return `Next: ${attempt}, when its turn comes, ${when(at ?? now, now)} at the latest.`
      return `Next: ${attempt}, ${when(at ?? now, now)} at the earliest.`
    case 'retry':
    case 'run':
      if (at === undefined) return `Next: ${attempt}, once that is over.`
      if (job.state === 'waiting' && obstacle === undefined) return `Next: ${attempt}, as soon as a worker is free.`
      return `Next: ${attempt}, ${when(at, now)}${at < now ? '; it is put in line within seconds' : ''}.`
  }
}

function voice(source: PolicySource, { job, set, now }: JobEvidence): string {
  switch (source) {
    case 'default':
      return 'the default'
    case 'settings':
      return "the settings of its workers' process"
    case 'definition':
      return 'its definition in the code'
    case 'enqueue':
      return 'its definition when it was enqueued'
    case 'queue':
    case 'job': {
      const of = source === 'queue' ? `queue ${job.queue}` : `job ${job.name}`
      const { version, by, at } = set[source] ?? { version: 0, by: 'somebody', at: now }
      return `the policy of ${of} (version ${version}, set by ${by} ${ago(at, now)})`
    }
  }
}

const CHARS = 200

/** As it is, on one line, in a length that can be read. */
const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= CHARS ? line : `${line.slice(0, CHARS).toWellFormed()}…`
}

/** A reason as the end of a sentence. */
const ended = (reason: string | undefined): string =>
  `${(reason ?? 'no reason is on record').trim().replace(/\.$/, '')}.`

const ago = (at: number, now: number): string => (at > now ? when(at, now) : `${duration(now - at)} ago`)

const when = (at: number, now: number): string => {
  const clock = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
  return at >= now ? `at ${clock}, in ${duration(at - now)}` : `at ${clock}, ${duration(now - at)} ago`
}
