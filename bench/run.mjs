// `npm run bench`: prepares everything, asks the questions, prints the tables. Names of questions ask only those;
// --quick takes less than five minutes; --json FILE writes the figures. It runs on the Node of bench/package.json, which
// is new enough for every contestant.
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildIfStale, installDependencies } from '../scripts/prepare.mjs'
import { endWithParent, interrupted, passSignalsOn, run } from '../scripts/run.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const NODE = join(here, 'node_modules/node/bin/node')

endWithParent()
passSignalsOn()
// For questions without a peer: the Node of whoever asks, beside the one that the peers need.
process.env.REDRIVE_BENCH_CALLER = JSON.stringify({ path: process.execPath, version: process.versions.node })
process.exitCode = (await prepared()) ? await run(NODE, [join(here, 'main.mjs'), ...process.argv.slice(2)]) : 1
if (interrupted() !== undefined) process.exitCode = interrupted()

async function prepared() {
  if (!((await installDependencies()) && (await buildIfStale()))) return false
  const lock = statSync(join(here, 'package-lock.json')).mtimeMs
  const installed = statSync(join(here, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (installed >= lock && existsSync(NODE)) return true
  console.log('Installing the peers (npm ci in bench/)…')
  return (await run('npm', ['ci', '--loglevel=error'], { cwd: here, quiet: true })) === 0
}
