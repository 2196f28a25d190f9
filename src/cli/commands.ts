// Every command there is, in the order of the help.
import type { Register } from './cli.js'
import { stats } from './commands/stats.js'

export const COMMANDS: readonly Register[] = [stats]
