// A dead letter, whole: what died, of what, what was tried, and what somebody noted about it.
import type { DeadLetterWithAttempts } from '../answers.js'
import type { Output } from '../output.js'
import type { Style } from '../style.js'
import { moment } from '../time.js'
import { attemptColumns } from './attempts.js'
import { fields, indented, jsonLines, section, stackLines, title } from './fields.js'

export function deadLetterStory(letter: DeadLetterWithAttempts, output: Output, now: number, style: Style): string[] {
  const { id, status, queue, name, errorType, message, kind, because, totalAttempts, maxAttempts, causes } = letter
  const when = (time: string | undefined) => (time === undefined ? undefined : moment(time, now))
  return [
    title(`Dead letter ${id}, ${status.replace('_', ' ')}`, style),
    ...fields(
      [
        ['job', `${name} in queue ${queue}`],
        ['died', moment(letter.diedAt, now)],
        ['attempts', maxAttempts === undefined ? totalAttempts : `${totalAttempts} of ${maxAttempts}`],
        ['error', `${errorType}: ${message}`],
        ...causes.map(cause => ['cause', `${cause.type}: ${cause.message}`] as const),
        ['kind', `${kind}, because ${because}`],
        ['buried', letter.reason],
        ['http status', letter.httpStatus],
        ['service', letter.service],
        ['group', letter.fingerprint],
        ['tenant', letter.tenant],
        ['user', letter.user],
        ['project', letter.project],
        ['unique key', letter.uniqueKey],
        ['enqueued', when(letter.createdAt)],
        ['redriven', when(letter.redrivenAt)],
        ['resolved', when(letter.resolvedAt)],
        ['resolution', letter.resolution],
        ['assigned to', letter.assignedTo],
        ['priority', letter.priority],
        ['notes', letter.notes],
      ],
      style,
    ),
    ...section('Attempts', indented(output.table(letter.attempts, attemptColumns(now))), style),
    ...section('Payload', jsonLines(letter.payload), style),
    ...section('Stack', stackLines(letter.stack), style),
  ]
}
