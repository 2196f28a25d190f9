// The desk itself: recovery, workers, audit, tokens, health.
import { z } from '@hono/zod-openapi'
import { DOCTOR_CHECKS } from '../../operator/doctor-findings.js'
import { json, key, listOf, page, reason, scope, time, yesNo } from './common.js'

const count = z.number().int().min(0)

export const recoveryRun = z
  .strictObject({
    id: z.string(),
    cause: z.enum(['schedule', 'demand', 'lapsed_session']),
    worker: z.string(),
    status: z.enum(['running', 'succeeded', 'failed']),
    startedAt: time,
    finishedAt: time.optional(),
    durationMs: z.number().optional(),
    error: z.string().optional(),
    rescued: count,
    promoted: count,
    buried: count,
    triaged: count,
    cleaned: count,
    expired: count,
  })
  .openapi('RecoveryRun')

export const recoveryStatus = z
  .strictObject({
    totalRuns: count,
    successfulRuns: count,
    failedRuns: count,
    lastRunAt: time.nullable(),
    lastRunDuration: z.number().nullable().openapi({ description: 'milliseconds' }),
    running: z.boolean(),
    recent: z.array(recoveryRun),
  })
  .openapi('RecoveryStatus')

export const worker = z
  .strictObject({
    id: z.string(),
    worker: z.string(),
    host: z.string(),
    pid: z.number().int(),
    version: z.string().optional(),
    queues: z.array(z.string()),
    concurrency: z.number().int(),
    state: z.enum(['live', 'silent', 'stopped', 'lapsed']),
    startedAt: time,
    renewedAt: time,
    expiresAt: time,
    endedAt: time.optional(),
  })
  .openapi('Worker')
export const workerList = listOf(worker).openapi('WorkerList')
export const workerQuery = z.strictObject({ ...page, ended: yesNo.optional() })

export const auditRecord = z
  .strictObject({
    id: z.string(),
    at: time,
    actor: z.string(),
    action: z.string(),
    targetType: z.string(),
    target: z.string(),
    before: json.optional(),
    after: json.optional(),
    reason: z.string().optional(),
  })
  .openapi('AuditRecord')
export const auditList = listOf(auditRecord).openapi('AuditList')
export const auditQuery = z
  .strictObject({ ...page, targetType: key.optional(), target: key.optional() })
  .refine(
    ({ targetType, target }) => (targetType === undefined) === (target === undefined),
    'must have both targetType and target, or neither',
  )

export const metrics = z.string().openapi({ description: 'as Prometheus reads it' })

export const events = z.string().openapi({ description: 'text/event-stream; the names of events are in the guide' })

export const me = z.strictObject({ name: z.string(), scopes: z.array(scope) }).openapi('Me')

const tokenName = z.string().regex(/^[\w.@-]{1,100}$/, 'must be 1 to 100 letters, digits or any of _ . @ -')
const tokenShape = { name: z.string(), scopes: z.array(scope), createdAt: time, createdBy: z.string() }
export const token = z.strictObject(tokenShape).openapi('Token')
export const tokenList = listOf(token).openapi('TokenList')
export const madeToken = z
  .strictObject({ ...tokenShape, secret: z.string().openapi({ description: 'shown this once' }) })
  .openapi('MadeToken')
export const tokenBody = z.strictObject({
  name: tokenName,
  scopes: z.array(scope).min(1).max(4),
  reason: reason.optional(),
})
export const byToken = z.strictObject({ name: tokenName })

export const health = z
  .strictObject({
    status: z.enum(['healthy', 'degraded', 'unhealthy']),
    score: z.number().min(0).max(1),
    reason: z.string(),
    checks: z.array(
      z.strictObject({
        name: z.string(),
        status: z.enum(['healthy', 'degraded', 'unhealthy']),
        score: z.number().min(0).max(1),
        reason: z.string(),
      }),
    ),
    at: time,
    since: time,
    successRate: z.number().nullable(),
  })
  .openapi('Health')

export const diagnosis = z
  .strictObject({
    well: z.boolean().openapi({ description: 'nothing was found, and everything could be looked at' }),
    findings: z.array(
      z.strictObject({
        check: z.enum(DOCTOR_CHECKS),
        status: z.enum(['ok', 'problem', 'skipped']),
        message: z.string(),
        advice: z.string().optional().openapi({ description: 'what to do about a problem' }),
      }),
    ),
  })
  .openapi('Diagnosis')

export const alive = z.strictObject({ status: z.literal('ok') }).openapi('Alive')
