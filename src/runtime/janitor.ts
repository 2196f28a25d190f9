// Keeps the ledger tidy: history partitions made ahead, and what is past its retention removed. Open dead letters are
// never touched.
import type { Database } from '../ledger/database.js'
import { foldLetterCounts } from '../ledger/dead-letter-count.js'
import { tidyGroups } from '../ledger/group-retention.js'
import { forgetRates } from '../ledger/rate-limit.js'
import {
  dropHistory,
  ensureHistoryDays,
  expireDeadLetters,
  forgetAttempts,
  forgetPayloads,
  forgetRuns,
  forgetSessions,
} from '../ledger/retention.js'
import { forgetSightings } from '../ledger/service-window.js'

export interface Retention {
  /** Completed and cancelled jobs, in whole days. */
  readonly finishedDays: number
  /** Dead letters that are recovered or permanently failed. */
  readonly resolvedDeadLetterDays: number
}

export const DEFAULT_RETENTION: Retention = { finishedDays: 7, resolvedDeadLetterDays: 30 }

const DAY_MS = 24 * 3_600_000
const DAYS_AHEAD = 3
const SESSIONS_KEPT_MS = 7 * DAY_MS
const RUNS_KEPT_MS = 30 * DAY_MS
/** Longer than any window of a breaker or a budget. */
const SIGHTINGS_KEPT_MS = 900_000
/** A schedule that nobody used for so long has nothing to remember: a new one is the same. */
const RATES_KEPT_MS = 3_600_000
const BATCH = 1_000

export async function tidy(
  db: Database,
  retention: Retention,
  showLife: () => Promise<void>,
): Promise<{ cleaned: number; expired: number }> {
  await ensureHistoryDays(db, DAYS_AHEAD)
  const cleaned = await dropHistory(db, retention.finishedDays, BATCH, showLife)
  await showLife()
  const expired = await expireDeadLetters(db, retention.resolvedDeadLetterDays * DAY_MS, BATCH, showLife)
  await foldLetterCounts(db)
  await showLife()
  await forgetAttempts(db, retention.finishedDays * DAY_MS, BATCH, showLife)
  await forgetPayloads(db, retention.finishedDays * DAY_MS, BATCH, showLife)
  await showLife()
  await forgetSessions(db, SESSIONS_KEPT_MS, BATCH, showLife)
  await forgetRuns(db, RUNS_KEPT_MS, BATCH, showLife)
  await forgetSightings(db, SIGHTINGS_KEPT_MS, BATCH, showLife)
  await forgetRates(db, RATES_KEPT_MS, BATCH, showLife)
  await tidyGroups(db, BATCH, showLife)
  return { cleaned, expired }
}
