// What people read at the end of a question, and at the end of all.
import { shortNumber, table } from './table.mjs'

/**
 * @param {import('./rounds.mjs').Question} question
 * @param {readonly import('./rounds.mjs').Row[]} rows
 */
export function questionText(question, rows) {
  const [main, ...others] = question.columns
  if (!main) throw new Error(`Question ${question.name} has no columns`)
  const lines = rows
    .filter(row => !row.failed && !row.absent)
    .map(({ label, figures }) => {
      const figure = figures[main.key]
      const range = figure && figure.samples.length > 1 ? `${shortNumber(figure.min)}–${shortNumber(figure.max)}` : ''
      return [label, shortNumber(figure?.median), range, ...others.map(({ key }) => shortNumber(figures[key]?.median))]
    })
  const left = rows.flatMap(({ label, failed, absent }) => [
    ...(failed ? [`${label}: failed: ${failed.split('\n')[0]}`] : []),
    ...(absent ? [`${label}: not measured: ${absent}`] : []),
  ])
  const head = ['', main.label, 'spread', ...others.map(({ label }) => label)]
  return [`\n${question.title} [${question.name}]`, table(head, lines), ...left].join('\n')
}

/**
 * One table over all questions.
 * @param {readonly { question: string, verdicts: readonly import('./verdict.mjs').Verdict[] }[]} answers
 */
export function summaryText(answers) {
  const rows = answers.flatMap(({ question, verdicts }) =>
    verdicts.map(({ target, ours, against, ratio, bare, passed }) => [
      question,
      target,
      ours,
      against,
      times(ratio),
      times(bare),
      passed === undefined ? 'not measured' : passed ? 'pass' : 'FAIL',
    ]),
  )
  return `\n${table(['question', 'target', 'redrive', 'against', 'ratio', 'bare', ''], rows, [0, 1, 3, 6])}`
}

/** @param {number | undefined} ratio */
const times = ratio => (ratio === undefined ? '' : `${ratio.toFixed(2)}×`)
