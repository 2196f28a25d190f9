// What the API answers, by the shapes that it is written with.
import type { z } from '@hono/zod-openapi'
import type * as letters from '../http/schemas/dead-letter.js'
import type * as desk from '../http/schemas/desk.js'
import type * as groups from '../http/schemas/group.js'
import type * as jobs from '../http/schemas/job.js'
import type * as queues from '../http/schemas/queue.js'
import type * as services from '../http/schemas/service.js'

export interface List<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | null
  readonly total: { readonly value: number; readonly exact: boolean }
}

export type Statistics = z.output<typeof queues.statistics>
export type QueueStatistics = z.output<typeof queues.queueStatistics>
export type DeadLetterSummary = z.output<typeof queues.deadLetterSummary>
export type QueueCounts = z.output<typeof queues.queueList>['items'][number]
export type QueueSettings = z.output<typeof queues.queueSettings>
export type Cleaned = z.output<typeof queues.cleaned>
export type DeadLetterBrief = z.output<typeof letters.deadLetterBrief>
export type DeadLetter = z.output<typeof letters.deadLetter>
export type DeadLetterWithAttempts = z.output<typeof letters.deadLetterWithAttempts>
export type Attempt = z.output<typeof letters.attempt>
export type JobBrief = z.output<typeof jobs.jobBrief>
export type Job = z.output<typeof jobs.job>
export type Explanation = z.output<typeof jobs.explanation>
export type Enqueued = z.output<typeof jobs.enqueued>
export type Cancelled = z.output<typeof jobs.cancelled>
export type GroupBrief = z.output<typeof groups.groupBrief>
export type Group = z.output<typeof groups.group>
export type Service = z.output<typeof services.service>
export type RecoveryRun = z.output<typeof desk.recoveryRun>
export type Token = z.output<typeof desk.token>
export type MadeToken = z.output<typeof desk.madeToken>
