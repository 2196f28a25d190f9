// Every command there is, in the order of the help.
import type { Register } from './cli.js'
import { completion } from './commands/completion.js'
import { dlq } from './commands/dlq.js'
import { doctor } from './commands/doctor.js'
import { enqueue } from './commands/enqueue.js'
import { explain } from './commands/explain.js'
import { group } from './commands/group.js'
import { jobs } from './commands/jobs.js'
import { migrate } from './commands/migrate.js'
import { queue } from './commands/queue.js'
import { recover } from './commands/recover.js'
import { serve } from './commands/serve.js'
import { service } from './commands/service.js'
import { stats } from './commands/stats.js'
import { token } from './commands/token.js'
import { work } from './commands/work.js'

export const COMMANDS: readonly Register[] = [
  serve,
  work,
  enqueue,
  stats,
  jobs,
  explain,
  dlq,
  queue,
  group,
  service,
  recover,
  migrate,
  token,
  doctor,
  completion,
]
