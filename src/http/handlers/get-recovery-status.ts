import type { Call } from '../route.js'

export async function getRecoveryStatus({ backend }: Call) {
  const { totalRuns, successfulRuns, failedRuns, running, recent, lastRunAt, lastRunDurationMs } =
    await backend.recoveryStatus()
  return {
    totalRuns,
    successfulRuns,
    failedRuns,
    lastRunAt: lastRunAt ?? null,
    lastRunDuration: lastRunDurationMs ?? null,
    running,
    recent,
  }
}
