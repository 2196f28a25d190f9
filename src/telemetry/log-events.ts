// What a Redrive says in the log by itself. What went wrong around the jobs is a warning; what became of a job is information:
// failures are expected, kept and grouped, and a line for each would only drown what matters (pitfall 25).
import type { Events } from '../domain/event.js'
import type { On } from './emitter.js'
import type { Logger } from './log.js'

export function logEvents(on: On, logger: Logger): void {
  on('error', ({ where, error }) => logger.warn({ where, error: messageOf(error) }, 'will be tried again'))
  on('worker.started', ({ worker }) => logger.info({ worker }, 'worker started'))
  on('worker.stopped', ({ worker }) => logger.info({ worker }, 'worker stopped'))
  on('worker.lapsed', ({ worker, reason, jobs }) =>
    logger.warn({ worker, reason, jobs: jobs.length }, 'lease lost; what it ran was aborted'),
  )
  on('worker.stalled', ({ worker, sinceMs }) => logger.warn({ worker, sinceMs }, 'nothing was fetched for too long'))
  on('job.retrying', ({ failure, delayMs, reason, ...event }) =>
    logger.info({ ...about(event), kind: failure.kind, delayMs, reason }, 'attempt failed; will be tried again'),
  )
  on('job.dead', ({ failure, reason, ...event }) =>
    logger.info(
      { ...about(event), ...(failure && { kind: failure.kind, group: failure.fingerprint }), reason },
      'job died',
    ),
  )
  on('job.rescued', ({ job, worker, decision }) =>
    logger.info({ job: job.id, queue: job.queue, name: job.name, worker, reason: decision.reason }, 'job rescued'),
  )
  on('breaker.changed', ({ service, from, to, reason, shadow }) =>
    logger[to === 'open' && !shadow ? 'warn' : 'info']({ service, from, to, reason, shadow }, 'breaker moved'),
  )
  on('group.new', ({ id, title, kind }) => logger.info({ group: id, title, kind }, 'new cause of failure'))
  on('group.regressed', ({ id, title, kind }) => logger.info({ group: id, title, kind }, 'resolved cause failed again'))
  on('triage.acted', ({ rule, action, letters }) => {
    if (action.type === 'discard') logger.info({ rule, letters, reason: action.reason }, 'discarded by a triage rule')
  })
  on('triage.escalated', ({ rule, message, letters }) =>
    logger.warn({ rule, letters: letters.map(({ id }) => id), reason: message }, 'a triage rule calls for somebody'),
  )
  on('recovery.finished', ({ cause, error }) => {
    if (error !== undefined) logger.warn({ cause, error }, 'recovery run failed')
  })
}

const about = ({ job, attempt, worker }: Pick<Events['job.completed'], 'job' | 'attempt' | 'worker'>) => ({
  job: job.id,
  attempt,
  queue: job.queue,
  name: job.name,
  worker,
})

const messageOf = (error: unknown): string => (error as Error)?.message ?? String(error)
