// Jobs of services that let only some through now: half-open, or closed a moment ago. Permits come first, from the
// breaker's row, so that their number is exact over the fleet; then as many jobs are claimed as there are permits.
import type { ClaimedJob } from '../domain/job.js'
import type { LaneDemand } from '../transport/transport.js'
import type { Services } from './breaker-sync.js'
import type { Slots } from './slots.js'

/** While jobs are released slowly, permits come about as often as this. */
const RELEASE_LOOK_MS = 100
/** A probe's permit may come back without anybody hearing of it. */
const PROBE_LOOK_MS = 1_000

/** `accept`: of each service as they come, so that a question for the next that fails leaves none of them behind. */
export async function fetchPaced(
  services: Services,
  slots: Slots,
  ahead: number,
  fetch: (demand: readonly LaneDemand[], limit: number) => Promise<ClaimedJob[]>,
  accept: (jobs: readonly ClaimedJob[]) => void,
): Promise<number> {
  let claimed = 0
  let waitMs = Number.POSITIVE_INFINITY
  for (const { service, demand, limit } of slots.paced(ahead)) {
    if (limit < 1 || service.allowance < 1) continue
    waitMs = Math.min(waitMs, service.breaker.state === 'half_open' ? PROBE_LOOK_MS : RELEASE_LOOK_MS)
    const permits = await services.take(service, limit - claimed)
    if (permits < 1) continue
    const jobs = await fetch(demand, permits)
    service.letThrough(jobs.map(({ lease }) => lease))
    services.giveBack(service, permits - jobs.length)
    claimed += jobs.length
    if (jobs.length > 0) accept(jobs)
  }
  return waitMs
}
