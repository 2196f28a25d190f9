// Do people who look slow the workers down? The same drain alone; with 200 readers, each of whom looks at something every
// five seconds as a console does, and 200 who listen to the events; and with the 200 asking again as soon as they were
// answered, which nobody does: it shows what a rush takes from the workers. The API has a process of its own, all who look
// another; the ledger holds dead letters to look at.
import { drain, expectCounts, inArena } from '../harness/arena.mjs'
import { openDeskProcesses } from '../harness/desk-processes.mjs'
import { fillCauses, fillDead } from '../harness/fill.mjs'
import { atLeast, noMoreThan } from '../harness/verdict.mjs'

const LETTERS = 40_000
const PEOPLE = 200

/** @type {{ key: string, label: string, audience?: import('../harness/desk-processes.mjs').Audience }[]} */
const FIELD = [
  { key: 'alone', label: 'alone' },
  {
    key: 'readers',
    label: '200 readers, 200 listeners',
    audience: { readers: PEOPLE, listeners: PEOPLE, everyMs: 5_000 },
  },
  { key: 'rush', label: '200 readers without a pause', audience: { readers: PEOPLE, listeners: 0, everyMs: 0 } },
]

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'readers',
  title: 'Readers: a drain of 200,000 jobs (100,000 in a quick run) while others look at the desk',
  rounds: { full: 5, quick: 2 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'readsPerSecond', label: 'reads/s' },
    { key: 'readMs', label: 'p95 of a read, ms' },
    { key: 'failed', label: 'reads failed' },
    { key: 'events', label: 'events' },
  ],
  entrants: quick =>
    FIELD.map(({ key, label, audience }) => ({
      key,
      label,
      measure: servers => inArena(servers, 'redrive', arena => measure(arena, quick ? 100_000 : 200_000, audience)),
    })),
  verdicts: medians => [
    atLeast(
      'with 200 readers and 200 listeners: ≥ 0.9 × alone',
      medians('readers', 'perSecond'),
      { label: 'alone', value: medians('alone', 'perSecond') },
      0.9,
    ),
    noMoreThan('none of their reads fails', medians('readers', 'failed'), 0),
  ],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {number} count
 * @param {import('../harness/desk-processes.mjs').Audience | undefined} audience
 */
async function measure(arena, count, audience) {
  await fillDead(arena, LETTERS)
  await fillCauses(arena)
  const producer = await arena.process()
  const worker = await arena.process()
  await producer.ask('enqueueMany', { count, batch: 1_000 })
  const leave = audience && (await openDeskProcesses(arena.address, audience))
  let seen
  let settledMs = 0
  try {
    ;({ settledMs } = await drain([worker], producer, { count }))
  } finally {
    seen = await leave?.()
  }
  await expectCounts(producer, { unfinished: 0, completed: count })
  return {
    perSecond: (count / settledMs) * 1000,
    ...(seen && { readsPerSecond: seen.perSecond, readMs: seen.p95, failed: seen.failed, events: seen.events }),
  }
}
