// Do the plans depend on statistics (pitfall 24)? The same drain on tables that were never vacuumed or analyzed, and
// after an ANALYZE.
import { drainRound } from '../harness/drain-round.mjs'
import { entrants, REDRIVE } from '../harness/entrants.mjs'
import { atLeast } from '../harness/verdict.mjs'

const JOBS = 40_000
const NO_AUTOVACUUM = `
  DO $$ DECLARE t regclass; BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'redrive'::regnamespace AND relkind = 'r' LOOP
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t);
    END LOOP;
  END $$`

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'never-analyzed',
  title: 'Never analyzed: a drain of 40,000 jobs without statistics and with them',
  rounds: { full: 3, quick: 1 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  entrants: () => [
    ...entrants([{ ...REDRIVE, key: 'never', label: 'never analyzed' }], async (arena, setup) => {
      await arena.meter?.client.query(NO_AUTOVACUUM)
      return drainRound(arena, setup, { count: JOBS })
    }),
    ...entrants([{ ...REDRIVE, key: 'analyzed', label: 'analyzed' }], (arena, setup) =>
      drainRound(arena, setup, {
        count: JOBS,
        beforeDrain: () => Promise.resolve(arena.meter?.client.query('ANALYZE')),
      }),
    ),
  ],
  verdicts: medians => [
    atLeast(
      'never analyzed: ≥ 0.8 × analyzed',
      medians('never', 'perSecond'),
      { label: 'analyzed', value: medians('analyzed', 'perSecond') },
      0.8,
    ),
  ],
}
