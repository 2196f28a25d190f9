// What do a breaker and a retry budget cost while nothing fails, and a rate limit that is not reached? The same drain, by
// jobs that name no service, by jobs that do (everything by default), and by jobs with a limit: nothing is held.
import { drainRound } from '../harness/drain-round.mjs'
import { entrants, REDRIVE } from '../harness/entrants.mjs'
import { atLeast } from '../harness/verdict.mjs'

const JOBS = 50_000
/** @type {import('../harness/entrants.mjs').Setup} */
const CONTAINED = {
  ...REDRIVE,
  key: 'redrive-contained',
  label: 'redrive, with a breaker and a budget',
  options: { service: 'idle' },
}

/** @type {import('../harness/entrants.mjs').Setup} */
const LIMITED = {
  ...REDRIVE,
  key: 'redrive-limited',
  label: 'redrive, with a rate limit',
  options: { rateLimit: { limit: 1_000_000, intervalMs: 1_000, burst: 1_000_000 } },
}

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'containment',
  title:
    'Containment: a drain of 50,000 jobs with breaker and budget, or a rate limit, configured and idle, and without',
  rounds: { full: 5, quick: 2 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'handledPerSecond', label: 'handlers/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
  ],
  entrants: () => entrants([REDRIVE, CONTAINED, LIMITED], (arena, setup) => drainRound(arena, setup, { count: JOBS })),
  verdicts: medians => [
    atLeast(
      'with: ≥ 0.95 × without',
      medians('redrive-contained', 'perSecond'),
      { label: 'without', value: medians('redrive', 'perSecond') },
      0.95,
    ),
    atLeast(
      'with a rate limit: ≥ 0.95 × without',
      medians('redrive-limited', 'perSecond'),
      { label: 'without', value: medians('redrive', 'perSecond') },
      0.95,
    ),
  ],
}
