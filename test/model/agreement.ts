// What must hold after everything that happens: the ledger says of every job what the model says, each id is in exactly
// one state, every move was legal, and nothing is lost or counted twice.
import { expect } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { canMove, INITIAL_STATES, type State } from '../../src/domain/lifecycle.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { findJob } from '../../src/ledger/job.js'
import { millis } from '../../src/ledger/rows.js'
import type { Model, ModelJob } from './model.js'
import type { World } from './world.js'

const COUNTERS = 'id, state, attempt, snoozes, holds, interruptions, lost, redrives'

// One look, so that it is of one moment. A dead letter is the job's state only if the job died after it was last sent
// back.
const LOOK = sql`
  SELECT (SELECT coalesce(json_agg(live), '[]') FROM (
            SELECT ${COUNTERS}, started AND state = 'active' AS started, ${millis('run_at')} AS "runAt" FROM redrive.job
          ) live)::text AS live,
         (SELECT coalesce(json_agg(finished), '[]') FROM (
            SELECT ${COUNTERS} FROM redrive.finished_job
          ) finished)::text AS finished,
         (SELECT coalesce(json_agg(letter), '[]') FROM (
            SELECT id, status, total_attempts AS "totalAttempts", recovery_attempts AS "recoveryAttempts", lost, redrives,
                   status IN ('pending', 'permanently_failed') AND redrives = recovery_attempts AS dead
            FROM redrive.dead_letter
          ) letter)::text AS letters,
         (SELECT json_build_object('completed', coalesce(sum(completed), 0), 'cancelled', coalesce(sum(cancelled), 0),
                                   'dead', coalesce(sum(dead), 0), 'recorded', (SELECT count(*) FROM redrive.attempt))
          FROM redrive.tally)::text AS counted`

interface Row extends Record<string, unknown> {
  id: JobId
  state: State
}
interface LetterRow extends Record<string, unknown> {
  id: JobId
  dead: boolean
}

async function look(db: Database) {
  const [row] = await db.query<Record<'live' | 'finished' | 'letters' | 'counted', string>>(LOOK)
  if (!row) throw new Error('The look shows nothing')
  return {
    live: JSON.parse(row.live) as Row[],
    finished: JSON.parse(row.finished) as Row[],
    letters: JSON.parse(row.letters) as LetterRow[],
    counted: JSON.parse(row.counted) as unknown,
  }
}

const counters = ({ state, attempt, snoozes, holds, interruptions, lost, redrives }: ModelJob) => ({
  ...{ state, attempt, snoozes, holds, interruptions, lost, redrives },
})

const liveAs = (job: ModelJob) => ({
  ...{ id: job.id, ...counters(job), started: job.state === 'active' && job.started, runAt: job.runAt },
})

const byId = <T extends { id: string }>(rows: readonly T[]) => rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** Where every job was when it was last looked at. */
export type Seen = Map<JobId, State>

export async function agree(model: Model, { db }: World, seen: Seen): Promise<void> {
  const { live, finished, letters, counted } = await look(db)
  const jobs = [...model.jobs.values()]

  expect(byId(live), 'live jobs').toEqual(byId(model.live().map(liveAs)))
  const ended = model.in('completed', 'cancelled').map(job => ({ id: job.id, ...counters(job) }))
  expect(byId(finished), 'finished jobs').toEqual(byId(ended))
  const expected = jobs.flatMap(({ id, state, redrives, letter }) => {
    if (!letter) return []
    const { status, totalAttempts, recoveryAttempts, lost } = letter
    const dead = state === 'dead'
    return [{ id, status, totalAttempts, recoveryAttempts, lost, redrives: dead ? redrives : redrives - 1, dead }]
  })
  expect(byId(letters), 'dead letters').toEqual(byId(expected))
  expect(counted, 'counts and records').toEqual({ ...model.ended, recorded: model.recorded })

  const places = [
    ...live,
    ...finished,
    ...letters.flatMap(({ id, dead }) => (dead ? [{ id, state: 'dead' as const }] : [])),
  ]
  const states = new Map(places.map(({ id, state }) => [id, state]))
  expect(states.size, 'an id in two states').toBe(places.length)
  expect(states.size, 'enqueued = completed + dead + cancelled + live').toBe(jobs.length)
  for (const [id, state] of states) {
    const before = seen.get(id)
    if (before === undefined) expect(INITIAL_STATES, `${id} began as ${state}`).toContain(state)
    else if (before !== state) expect(canMove(before, state), `${before} → ${state}`).toBe(true)
    seen.set(id, state)
  }
}

/** What a person is shown of each job is where it is. */
export async function agreeInView(model: Model, { db }: World): Promise<void> {
  for (const { id, state } of model.jobs.values()) {
    expect((await findJob(db, id))?.state, `what is shown of ${id}`).toBe(state)
  }
}
