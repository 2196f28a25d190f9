// The process around the program: its streams, its signals, its version.
import { readFile } from 'node:fs/promises'
import { systemClock } from '../domain/clock.js'
import { EXIT } from './exit.js'
import { interruption } from './interrupt.js'
import { runCli } from './program.js'

/** Runs a command to its end; what it ends with is the process's exit code. */
export async function runProcess(args: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', unread)
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  process.exitCode = await runCli(args, {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    version,
    interrupt: interruption(process),
  })
}

/** A pipe that broke, a terminal that was closed, a parent that left. */
const UNREAD = new Set(['EPIPE', 'EIO', 'ECONNRESET'])

/**
 * Nobody reads any more, as after `redrive dlq ls | head`: that is no error. What runs until it is told to stop ends as it would
 * at Ctrl-C: a pipe to `tee` breaks with the very same Ctrl-C.
 */
function unread(error: NodeJS.ErrnoException): void {
  if (!UNREAD.has(error.code ?? '')) throw error
  if (process.listenerCount('SIGTERM') > 0) process.emit('SIGTERM')
  else process.exit(EXIT.ok)
}
