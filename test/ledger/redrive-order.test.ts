// Redriven in batches that are written side by side, dead letters still come back in the order in which they died.
import { expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { sql } from '../../src/ledger/database.js'
import { deadLetters } from '../../src/operator/dead-letters.js'
import { freshDatabase } from '../support/databases.js'

/** More than two batches. */
const LETTERS = 3_500

const FILL = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, outcome, kind, queue, name, payload, reason, message, fingerprint, unique_key)
  SELECT gen_random_uuid(), g, timestamptz '2030-01-01' + g * interval '1 ms', now(), now(), 1, 0, 0, 5, 'failed',
    'network', 'mail', 'send', '{}', 'over', 'busy', 'v1:x', CASE WHEN g % 3 = 0 THEN 'key ' || g END
  FROM generate_series($1::integer, 1, -1) g`

it.each(['memory', 'server'] as const)('oldest death first, over all batches (%s)', async kind => {
  const { db } = await freshDatabase(kind)
  await db.query(FILL, [LETTERS])
  const { redriven, conflicts } = await deadLetters({ db, wake: () => {} }).retryMany({ all: true })
  expect([redriven.length, conflicts.length]).toEqual([LETTERS, 0])
  const died = await db.query<{ id: JobId }>(sql`SELECT id FROM redrive.dead_letter ORDER BY died_at`)
  const inLine = await db.query<{ id: JobId }>(sql`SELECT id FROM redrive.job ORDER BY line`)
  expect(inLine).toEqual(died)
})
