#!/usr/bin/env node
// The `redrive` command: the process around the program.
import { readFile } from 'node:fs/promises'
import { systemClock } from '../domain/clock.js'
import { EXIT } from './exit.js'
import { interruption } from './interrupt.js'
import { runCli } from './program.js'

// Nobody reads any more, as after `redrive dlq ls | head`: that is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(EXIT.ok)
  })
}

const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock: systemClock,
  version,
  interrupt: interruption(process),
})
