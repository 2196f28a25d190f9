// A job, wherever it is: where it stands, what it carries, what was tried.
import type { Job } from '../answers.js'
import type { Output } from '../output.js'
import type { Style } from '../style.js'
import { moment } from '../time.js'
import { attemptColumns } from './attempts.js'
import { fields, indented, jsonLines, section, title } from './fields.js'

export function jobStory(job: Job, output: Output, now: number, style: Style): string[] {
  const when = (time: string | undefined) => (time === undefined ? undefined : moment(time, now))
  const ifAny = (count: number) => (count === 0 ? undefined : count)
  return [
    title(`Job ${job.id}, ${job.state}`, style),
    ...fields(
      [
        ['job', `${job.name} in queue ${job.queue}`],
        ['priority', job.priority],
        ['attempts', job.maxAttempts === undefined ? job.attempt : `${job.attempt} of ${job.maxAttempts}`],
        ['enqueued', moment(job.createdAt, now)],
        ['runs at', job.finishedAt === undefined ? when(job.runAt) : undefined],
        ['started', when(job.claimedAt)],
        ['ended', when(job.finishedAt)],
        ['reason', job.reason],
        ['cancelling', job.cancelRequested && 'asked to stop'],
        ['service', job.service],
        ['tenant', job.tenant],
        ['user', job.user],
        ['project', job.project],
        ['unique key', job.uniqueKey],
        ['snoozes', ifAny(job.snoozes)],
        ['holds', ifAny(job.holds)],
        ['interruptions', ifAny(job.interruptions)],
        ['lost', ifAny(job.lost)],
        ['redrives', ifAny(job.redrives)],
      ],
      style,
    ),
    ...(job.attempts.length === 0
      ? []
      : section('Attempts', indented(output.table(job.attempts, attemptColumns(now))), style)),
    ...section('Payload', jsonLines(job.payload), style),
    ...section('Progress', jsonLines(job.progress), style),
    ...section('Result', jsonLines(job.result), style),
  ]
}
