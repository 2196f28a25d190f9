// What the doctor found: a line for each check, and below a problem what to do about it.
import { printable } from '../../domain/printable.js'
import type { Diagnosis } from '../../operator/doctor.js'
import type { Style } from '../style.js'
import { padEnd } from '../text.js'

const MARKS = { ok: 'ok', problem: 'PROBLEM', skipped: 'skipped' } as const
const WIDTH = 7

export function diagnosisStory({ findings }: Diagnosis, style: Style): string[] {
  const paints = { ok: style.green, problem: style.red, skipped: style.yellow }
  return findings.flatMap(({ status, check, message, advice }) => [
    `${paints[status](padEnd(MARKS[status], WIDTH))}  ${style.bold(check)}: ${printable(message)}`,
    ...(advice === undefined ? [] : [`${' '.repeat(WIDTH)}  → ${printable(advice)}`]),
  ])
}
