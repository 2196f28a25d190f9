// Runs a program when this process may open no more files, and again when it may; tells how each went. To be started with a
// low limit of open files: node --import tsx exhausted-process.ts
import { closeSync, openSync, writeSync } from 'node:fs'
import { limitedRun } from '../../../../apps/thumbnails/limited-run.js'

const LIMITS = { timeMs: 60_000, cpuSeconds: 60, memoryBytes: 4 * 2 ** 30, outputBytes: 1_000_000 }
const run = () => limitedRun('/bin/echo', ['ran'], LIMITS, new AbortController().signal)

const files: number[] = []
try {
  for (;;) files.push(openSync('/dev/null', 'r'))
} catch {
  // as many as there can be
}
const code = await run().then(
  () => 'none',
  (error: NodeJS.ErrnoException) => error.code,
)
for (const file of files) closeSync(file)
writeSync(1, `${code}\n`)
writeSync(1, `then: ${(await run()).output}`)
