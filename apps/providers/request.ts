// What a job asks of a provider: checked when it is enqueued, and again before it runs, since anybody may publish one.
import { z } from 'zod'
import { LONGEST_NAME, NAMESPACE, NAMESPACE_ALLOWED, WORD, WORD_ALLOWED } from './names.js'

const word = z.string().max(LONGEST_NAME).regex(WORD, WORD_ALLOWED)

export const providerRequest = z.strictObject({
  /** The namespace: `ITL.Core`. */
  provider: z.string().max(LONGEST_NAME).regex(NAMESPACE, NAMESPACE_ALLOWED),
  resourceType: word,
  operation: word,
  /** What the operation needs; the provider knows its shape. */
  request: z.record(z.string(), z.json()).default({}),
  /** 0–10, higher first; what `submit` enqueues it with. */
  priority: z.int().min(0).max(10).default(5),
})

export type ProviderRequest = z.input<typeof providerRequest>
export type CheckedRequest = z.output<typeof providerRequest>
