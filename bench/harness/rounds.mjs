// Asks one question: rounds interleaved (A B C, A B C, …), so that what slows the machine for a while slows everyone.
import { Absent } from './arena.mjs'
import { median, spread } from './statistics.mjs'

/**
 * @typedef {object} Question
 * @property {string} name how it is asked for on the command line
 * @property {string} title
 * @property {{ full: number, quick: number }} rounds
 * @property {{ key: string, label: string }[]} columns the first is shown with its spread
 * @property {(servers: import('./arena.mjs').Servers, quick: boolean) => Promise<any>} [prepare] what all entrants
 *   share, with a `close`
 * @property {(quick: boolean, shared: any) => import('./entrants.mjs').Entrant[]} entrants
 * @property {(medians: import('./verdict.mjs').Medians) => import('./verdict.mjs').Verdict[]} verdicts
 *
 * @typedef {object} Row
 * @property {string} key
 * @property {string} label
 * @property {Record<string, { median: number, min: number, max: number, samples: number[] }>} figures
 * @property {string} [failed] why it has no figures
 * @property {string} [absent] why it did not take part
 */

/**
 * @param {Question} question
 * @param {import('./arena.mjs').Servers} servers
 * @param {{ quick: boolean, log: (line: string) => void, stopped: () => boolean }} options
 * @returns {Promise<{ rows: Row[], verdicts: import('./verdict.mjs').Verdict[] }>}
 */
export async function ask(question, servers, options) {
  let shared
  try {
    shared = await question.prepare?.(servers, options.quick)
  } catch (error) {
    // The other questions are asked all the same, and what they found is told.
    const row = { key: 'everyone', label: 'everyone', figures: {}, ...reasonOf(error) }
    return { rows: [row], verdicts: question.verdicts(() => undefined) }
  }
  try {
    return await askAll(question, servers, question.entrants(options.quick, shared), options)
  } finally {
    await shared?.close()
  }
}

/** @param {unknown} error @returns {{ absent: string } | { failed: string }} */
function reasonOf(error) {
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof Absent ? { absent: message } : { failed: message }
}

/**
 * @param {Question} question
 * @param {import('./arena.mjs').Servers} servers
 * @param {readonly import('./entrants.mjs').Entrant[]} entrants
 * @param {Parameters<typeof ask>[2]} options
 */
async function askAll(question, servers, entrants, { quick, log, stopped }) {
  const field = entrants.map(entrant => ({
    entrant,
    samples: /** @type {import('./entrants.mjs').Figures[]} */ ([]),
    failed: /** @type {string | undefined} */ (undefined),
    absent: /** @type {string | undefined} */ (undefined),
  }))
  const rounds = quick ? question.rounds.quick : question.rounds.full
  for (let round = 1; round <= rounds; round += 1) {
    for (const place of field) {
      if (stopped() || place.failed || place.absent) continue
      log(`${question.name}: round ${round} of ${rounds}, ${place.entrant.label}`)
      try {
        place.samples.push(await place.entrant.measure(servers))
      } catch (error) {
        Object.assign(place, reasonOf(error))
      }
    }
  }
  const rows = field.map(({ entrant, samples, failed, absent }) => ({
    key: entrant.key,
    label: entrant.label,
    figures: failed ? {} : summarised(samples),
    ...(failed && { failed }),
    ...(absent && { absent }),
  }))
  /** @type {import('./verdict.mjs').Medians} */
  const medians = (key, column) => rows.find(row => row.key === key)?.figures[column]?.median
  return { rows, verdicts: question.verdicts(medians) }
}

/** @param {readonly import('./entrants.mjs').Figures[]} samples @returns {Row['figures']} */
function summarised(samples) {
  const columns = [...new Set(samples.flatMap(figures => Object.keys(figures)))]
  return Object.fromEntries(
    columns.map(column => {
      const values = samples.map(figures => figures[column]).filter(value => value !== undefined)
      const { min, max } = spread(values) ?? { min: 0, max: 0 }
      return [column, { median: median(values) ?? 0, min, max, samples: values }]
    }),
  )
}
