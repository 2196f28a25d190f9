// Runs the examples that are named on the command line, one after the other in this one process, and prints what each
// logged and how it ended as one line of JSON. Started by examples.test.ts.

import { pathToFileURL } from 'node:url'
import { format } from 'node:util'
import { closeAll } from './redrive-for-examples.js'

const LIMIT_MS = 20_000

for (const file of process.argv.slice(2)) {
  const logged: string[] = []
  const log = console.log
  console.log = (...args) => void logged.push(format(...args))
  let error: string | undefined
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`still running after ${LIMIT_MS} ms`)), LIMIT_MS).unref()
  })
  try {
    await Promise.race([import(pathToFileURL(file).href), late])
  } catch (thrown) {
    error = (thrown as Error).stack ?? String(thrown)
  }
  await closeAll()
  console.log = log
  console.log(JSON.stringify({ file, logged, error }))
}
process.exit(0)
