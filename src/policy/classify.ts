// What kind of failure is this, and can it heal? Anything may have been thrown; the answer is always a Failure.
//
// Who is heard, in this order: an error that says its kind itself; the user's rules, then the job's classifier;
// the evidence in the error and its causes (classify/verdict.ts). An error that nobody can read is `transient`:
// its few attempts are bounded and spread by the backoff, while a job wrongly buried waits for a person.
import type { Failure } from '../domain/failure.js'
import { LIMITS } from '../domain/limits.js'
import { chainOf, flatten } from './classify/chain.js'
import type { ClassifyContext } from './classify/context.js'
import type { Evidence } from './classify/evidence.js'
import type { Facts } from './classify/facts.js'
import { own } from './classify/own.js'
import { askClassifier, matchRules } from './classify/rules.js'
import { judge } from './classify/verdict.js'
import { fingerprint } from './fingerprint.js'
import { readRetryAfter } from './retry-after.js'

export type { Classifier, ClassifierAnswer, ClassifyContext, Rule, RuleMatch } from './classify/context.js'

export function classify(error: unknown, context: ClassifyContext = {}): Failure {
  const chain = chainOf(error)
  const all = flatten(chain)
  const outermost = chain.facts
  const stated = own(outermost) ?? matchRules(context.rules ?? [], all)
  const asked = stated ? {} : askClassifier(error, context)
  const found = stated ?? asked.evidence ?? judge(chain)
  const evidence = found ?? unknown(context)
  const code = firstOf(all, facts => facts.code)
  const httpStatus = firstOf(all, facts => facts.status)
  const service = evidence.service ?? context.service ?? context.job?.service
  const retryAfterMs =
    evidence.retryAfterMs ??
    firstOf(all, facts => (facts.plain ? undefined : readRetryAfter(facts.error, context.now, facts.status)))
  // Filled in step by step: in a storm, copying a failure for each thing that it may have costs more than judging it.
  const failure: { -readonly [Field in keyof Failure]: Failure[Field] } = {
    kind: evidence.kind,
    because: asked.note === undefined ? evidence.because : `${evidence.because} (${asked.note})`,
    type: outermost.type,
    message: outermost.message,
    causes: all.length > 1 ? all.slice(1, 1 + LIMITS.causes).map(causeOf) : NO_CAUSES,
    fingerprint: '',
  }
  if (code !== undefined) failure.code = code
  if (outermost.stack !== undefined) failure.stack = outermost.stack
  if (httpStatus !== undefined) failure.httpStatus = httpStatus
  if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs
  if (service !== undefined) failure.service = service
  if (found === undefined) failure.unknown = true
  failure.fingerprint = fingerprint(failure, context.job?.name)
  return failure
}

const NO_CAUSES: Failure['causes'] = []

function unknown({ service, job }: ClassifyContext): Evidence {
  const called = service ?? job?.service
  const where = called === undefined ? '' : ` while calling ${called}`
  return { kind: 'transient', because: `unknown error${where}: tried again, since it may heal` }
}

const causeOf = ({ type, message, code }: Facts) => ({ type, message, ...(code !== undefined && { code }) })

/** From the outermost error inwards. */
function firstOf<T>(chain: readonly Facts[], read: (facts: Facts) => T | undefined): T | undefined {
  for (const facts of chain) {
    const found = read(facts)
    if (found !== undefined) return found
  }
  return undefined
}
