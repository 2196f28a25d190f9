// What `npm start` runs: `redrive serve`, with the modules that it is given before its options.
import { readFile } from 'node:fs/promises'
import { interruption } from './cli/interrupt.js'
import { runCli } from './cli/program.js'
import { systemClock } from './domain/clock.js'

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

// Nobody reads any more, as after `npm start | head`: what is running ends as it would at Ctrl-C.
process.stdout.on('error', () => process.emit('SIGTERM'))

process.exitCode = await runCli(['serve', ...process.argv.slice(2)], {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock: systemClock,
  version,
  interrupt: interruption(process),
})
