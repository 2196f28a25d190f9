// One judgement from all the evidence in an error and its causes.
//
// Evidence comes in tiers: what a protocol or driver states (a status, a code) before what the type suggests,
// before what the text seems to say, before what its name hints at, before errors that say next to nothing (weak.ts). A better tier anywhere in the chain wins; in the same tier the outermost
// error wins, for it knows best what the failure meant to the job. So `Error('could not save', { cause: 503 })`
// is a 503, and `TransientError('…', { cause: 404 })` is what its thrower says.
//
// The members of an AggregateError are judged one by one, each with its causes. If any of them can heal, so can
// the whole: a retry that is not needed costs an attempt, a burial costs a person's time.
import { RETRIABLE } from '../../domain/failure.js'
import { amqp } from './amqp.js'
import { aws } from './aws.js'
import type { Link } from './chain.js'
import type { Evidence, Source } from './evidence.js'
import type { Facts } from './facts.js'
import { grpc } from './grpc.js'
import { http } from './http.js'
import { node } from './node.js'
import { own } from './own.js'
import { ByMessage } from './plain.js'
import { postgres } from './postgres.js'
import { prisma } from './prisma.js'
import { program } from './program.js'
import { redis } from './redis.js'
import { smtp } from './smtp.js'
import { text } from './text.js'
import { names, types } from './types.js'
import { undici } from './undici.js'
import { weak } from './weak.js'

/** In a tier the first source that has something to say is heard. */
const TIERS: readonly (readonly Source[])[] = [
  [own, aws, amqp, grpc, smtp, prisma, http, node, program, undici, postgres, redis],
  [types],
  [text],
  [names],
  [weak],
]

const UNKNOWN: Verdict = { tier: TIERS.length }

interface Verdict {
  readonly tier: number
  /** Missing where no source had anything to say. */
  readonly evidence?: Evidence
}

/** Undefined if nothing in the whole chain says anything. */
export const judge = (link: Link): Evidence | undefined => verdictOn(link).evidence

function verdictOn({ facts, cause, members }: Link): Verdict {
  if (!cause && members.length === 0) return verdictOnOne(facts)
  const verdicts = [
    verdictOnOne(facts),
    ...(cause ? [nested(verdictOn(cause), 'in its cause')] : []),
    ...(members.length > 0 ? [nested(bestMember(members.map(verdictOn)), 'in one of its errors')] : []),
  ]
  return verdicts.reduce((best, next) => (next.tier < best.tier ? next : best))
}

const onPlainOnes = new ByMessage<Verdict>()

const verdictOnOne = (facts: Facts): Verdict =>
  facts.plain ? onPlainOnes.of(facts.type, facts.message, () => askAll(facts)) : askAll(facts)

function askAll(facts: Facts): Verdict {
  for (const [tier, sources] of TIERS.entries()) {
    for (const source of sources) {
      const evidence = source(facts)
      if (evidence) return { tier, evidence }
    }
  }
  return UNKNOWN
}

/** One that can heal before one that cannot; an error nobody can read may heal too. */
function bestMember(verdicts: readonly Verdict[]): Verdict {
  const healing = verdicts.filter(({ evidence }) => evidence === undefined || RETRIABLE[evidence.kind])
  const candidates = healing.length > 0 ? healing : verdicts
  return candidates.reduce((best, next) => (next.tier < best.tier ? next : best), candidates[0] ?? UNKNOWN)
}

function nested({ tier, evidence }: Verdict, where: string): Verdict {
  if (!evidence || evidence.because.endsWith(where)) return evidence ? { tier, evidence } : { tier }
  return { tier, evidence: { ...evidence, because: `${evidence.because}, ${where}` } }
}
