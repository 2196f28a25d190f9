// Options of the commands that run workers.
import type { Command } from 'commander'
import { graceTime, names, wholeNumber } from './arguments.js'

export interface WorkOptions {
  readonly queues?: readonly string[]
  readonly concurrency?: number
  readonly grace?: number
}

/** Of one that serves as well. */
export interface ServerOptions extends WorkOptions {
  readonly demo?: true
  readonly port?: number
  readonly host?: string
}

export const addWorkOptions = (command: Command): Command =>
  command
    .option('--queues <names>', 'only jobs of these queues, with commas', names)
    .option('--concurrency <number>', 'at most so many jobs at once (10)', wholeNumber(1, 100_000))
    .option('--grace <time>', 'how long running jobs may take to finish at the end (30s)', graceTime)
