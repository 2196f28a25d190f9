// A job by its name alone, for whoever has no code of it: queue, service and attempts are what its workers last announced.
import type { Queryable } from '../ledger/database.js'
import { jobType } from '../ledger/job-type.js'
import { parsePolicy } from '../policy/effective.js'
import { type AnyJobDefinition, defineJob } from './definition.js'

export async function namedDefinition(db: Queryable, name: string, queue?: string): Promise<AnyJobDefinition> {
  const known = await jobType(db, name, queue)
  const { attempts } = parsePolicy(known?.policy ?? {}, `announced policy of job ${name}`)
  const itsQueue = queue ?? known?.queue
  return defineJob({
    name,
    ...(itsQueue !== undefined && { queue: itsQueue }),
    ...(known?.service != null && { service: known.service }),
    ...(attempts !== undefined && { retry: { attempts } }),
  })
}
