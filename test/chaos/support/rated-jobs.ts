// Jobs with rate limits: one limit for each tenant, and one limit for all.
import { defineJob, type Handler } from '../../../src/index.js'

type Empty = Record<string, never>

export const PER_TENANT = { limit: 40, intervalMs: 1_000, burst: 5 } as const
export const FOR_ALL = { limit: 300, intervalMs: 5_000, burst: 1 } as const

export const ratedJobs = (handler?: Handler<Empty, unknown>) => {
  const of = { queue: 'rated', ...(handler && { handler }) }
  return {
    call: defineJob<Empty>({ name: 'call', rateLimit: { key: 'tenant', ...PER_TENANT }, ...of }),
    send: defineJob<Empty>({ name: 'send', rateLimit: FOR_ALL, ...of }),
  }
}
