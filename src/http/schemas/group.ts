import { z } from '@hono/zod-openapi'
import { GROUP_STATUSES } from '../../domain/group.js'
import { LIMITS } from '../../domain/limits.js'
import { id, key, listOf, page, priority, reason, text, time, total, when, whole, yesNo } from './common.js'
import { kind, outcome } from './dead-letter.js'

const status = z.enum(GROUP_STATUSES)
const share = z.strictObject({ value: z.string(), count: z.number() }).openapi('Share')

const shared = {
  id: z.string(),
  title: z.string(),
  kind,
  errorType: z.string().optional(),
  service: z.string().optional(),
  status,
  regressed: z.boolean(),
  regressedAt: time.optional(),
  regressedVersion: z.string().optional(),
  regressions: z.number().int(),
  assignee: z.string().optional(),
  priority: z.number().int(),
  notes: z.string().optional(),
  firstSeen: time,
  lastSeen: time,
  firstVersion: z.string().optional(),
  failures: z.number().int(),
  deaths: z.number().int(),
  dead: total,
  retrying: total,
  resolvedAt: time.optional(),
  resolvedBy: z.string().optional(),
  updatedAt: time,
  version: z.number().int(),
}

export const groupBrief = z.strictObject(shared).openapi('GroupBrief')
export const groupList = listOf(groupBrief).openapi('GroupList')

export const group = z
  .strictObject({
    ...shared,
    members: z.array(z.string()),
    perMinute: z.number(),
    queues: z.array(share),
    names: z.array(share),
    versions: z.array(share),
    tenants: z.array(share),
    samples: z.array(
      z.strictObject({
        job: id,
        queue: z.string(),
        name: z.string(),
        attempt: z.number().int(),
        outcome,
        message: z.string(),
        stack: z.string().optional(),
        version: z.string().optional(),
        worker: z.string().optional(),
        at: time,
      }),
    ),
  })
  .openapi('Group')

export const groupQuery = z.strictObject({
  ...page,
  status: status.optional(),
  regressed: yesNo.optional(),
  kind: kind.optional(),
  service: key.optional(),
  assignee: key.optional(),
  queue: key.optional(),
  q: key.optional(),
  sort: z.enum(['lastSeen', 'failures']).optional(),
})

export const byGroup = z.strictObject({ id: key })

export const groupBody = z
  .strictObject({
    status: status.optional(),
    assignee: text(LIMITS.nameChars).nullable().optional(),
    notes: text(LIMITS.notesChars).nullable().optional(),
    priority: priority.optional(),
    reason: reason.optional(),
  })
  .refine(
    ({ reason: _, ...change }) => Object.keys(change).length > 0,
    'must have at least one of status, assignee, notes, priority',
  )

export const failureReasonsQuery = z.strictObject({
  limit: whole(1, 200).optional(),
  since: when.optional(),
  until: when.optional(),
  queue: key.optional(),
  kind: kind.optional(),
  service: key.optional(),
})

export const failureReasons = z
  .strictObject({
    since: time,
    until: time,
    exact: z.boolean(),
    items: z.array(
      z.strictObject({
        group: z.string(),
        title: z.string(),
        kind,
        service: z.string().optional(),
        status,
        failures: z.number(),
        deaths: z.number(),
        share: z.number(),
        lastSeen: time,
        queues: z.array(z.string()),
        sample: z.strictObject({
          jobId: id,
          errorType: z.string().optional(),
          message: z.string().optional(),
          at: time.optional(),
        }),
      }),
    ),
  })
  .openapi('FailureReasons')
