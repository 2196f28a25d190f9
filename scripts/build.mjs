// Builds dist/ from src/: compiles the TypeScript and copies what the program reads as files (SQL).
// It is built beside dist/ and moved into place when whole, so that a failed build leaves the last good one.
import { chmod, cp, mkdir, rename, rm, utimes } from 'node:fs/promises'
import { extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, runTool } from './run.mjs'

const NEXT = `${root}dist.next`

/** @returns {Promise<boolean>} whether dist/ now holds the program of src/. */
export async function build() {
  const started = new Date()
  await rm(NEXT, { recursive: true, force: true })
  await mkdir(NEXT)
  if ((await runTool('typescript/bin/tsc', ['--project', 'tsconfig.build.json', '--outDir', NEXT])) !== 0) {
    await rm(NEXT, { recursive: true, force: true })
    return false
  }
  await cp(`${root}src`, NEXT, { recursive: true, filter: path => ['', '.sql'].includes(extname(path)) })
  // npm makes the command executable when it first links it, and not again after a build: `npx redrive` would be refused.
  await chmod(`${NEXT}/cli/main.js`, 0o755)
  // The folder's own time says which state of src/ it was built from: what is saved during the build is newer.
  await utimes(NEXT, started, started)
  await rm(`${root}dist`, { recursive: true, force: true })
  await rename(NEXT, `${root}dist`)
  return true
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = (await build()) ? 0 : 1
