// What the user says: rules as data first (an operator can change them at run time), then the job's classifier.
import { isKind } from '../../domain/failure.js'
import { cap, LIMITS } from '../../domain/limits.js'
import { isObject, prop, textProp } from '../read.js'
import { waitMs } from '../retry-after/wait.js'
import type { ClassifyContext, Rule, RuleMatch } from './context.js'
import type { Evidence } from './evidence.js'
import { type Facts, factsOf } from './facts.js'

/** The first rule that fits any error of the chain. */
export function matchRules(rules: readonly Rule[], chain: readonly Facts[]): Evidence | undefined {
  const rule = rules.find(({ match }) => chain.some(facts => fits(match, facts)))
  return rule && { kind: rule.kind, because: `a rule for ${describe(rule.match)}` }
}

function fits({ type, code, status, text }: RuleMatch, facts: Facts): boolean {
  if (type === undefined && code === undefined && status === undefined && text === undefined) return false
  return (
    (type === undefined || type === facts.type) &&
    (code === undefined || String(code) === facts.code) &&
    (status === undefined || status === facts.status) &&
    (text === undefined || facts.message.toLowerCase().includes(text.toLowerCase()))
  )
}

const describe = ({ type, code, status, text }: RuleMatch): string =>
  Object.entries({ type, code, status, text })
    .flatMap(([key, value]) => (value === undefined ? [] : [`${key} ${JSON.stringify(value)}`]))
    .join(', ')

/** What the classifier said; or nothing, with a note for `because` if it did not work as it should. */
export function askClassifier(
  error: unknown,
  context: ClassifyContext,
): { readonly evidence?: Evidence; readonly note?: string } {
  if (context.classifier === undefined) return {}
  try {
    const answer: unknown = context.classifier(error, context)
    if (answer === undefined) return {}
    const kind = isObject(answer) ? prop(answer, 'kind') : answer
    if (isKind(kind)) return { evidence: evidenceOf(answer, kind) }
    // A promise cannot be waited for here; left alone, its rejection would end the process.
    if (isObject(answer)) Promise.resolve(answer).catch(() => undefined)
    return { note: 'the classifier gave no kind and was ignored' }
  } catch (thrown) {
    const { type, message } = factsOf(thrown)
    return { note: cap(`the classifier threw ${type}: ${message}, and was ignored`, 300) }
  }
}

function evidenceOf(answer: unknown, kind: Evidence['kind']): Evidence {
  const because = textProp(answer, 'because')
  const service = textProp(answer, 'service')
  const asked = prop(answer, 'retryAfterMs')
  const retryAfterMs = typeof asked === 'number' ? waitMs(asked) : undefined
  return {
    kind,
    because: because === undefined ? `the classifier says ${kind}` : cap(because, LIMITS.reasonChars),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(service !== undefined && { service }),
  }
}
