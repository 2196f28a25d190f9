// `npm test`: every check there is, in order, with a summary a person and a script can read. Arguments go to
// Vitest (`npm test -- test/policy`). With CI=true or --ci, a server the tests need and cannot have is a failure.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { checkNode, installDependencies } from './prepare.mjs'
import { endWithParent, interrupted, passSignalsOn, runTool } from './run.mjs'
import { provide, services } from './services.mjs'

const args = process.argv.slice(2).filter(arg => arg !== '--ci')
const strict = process.argv.includes('--ci') || ['true', '1'].includes(process.env.CI ?? '')

checkNode()
endWithParent()
passSignalsOn()
process.exitCode = (await installDependencies()) ? await checkAll() : 1
if (interrupted() !== undefined) process.exitCode = interrupted()

/** @returns {Promise<number>} the exit code */
async function checkAll() {
  /** @type {{ name: string, passed: boolean, seconds: number }[]} */
  const results = []
  /** @param {string} name @param {() => Promise<boolean>} check */
  const step = async (name, check) => {
    if (interrupted() !== undefined) return
    console.log(`\n== ${name}`)
    const started = performance.now()
    results.push({ name, passed: await check(), seconds: (performance.now() - started) / 1000 })
  }

  const colours = process.env.NO_COLOR ? ['--colors=off'] : [] // Biome does not read NO_COLOR
  await step('format and lint', async () => (await runTool('@biomejs/biome/bin/biome', ['ci', ...colours])) === 0)
  await step('types', async () => (await runTool('typescript/bin/tsc', ['--noEmit'])) === 0)
  await step('build', build)

  let counts = { passed: 0, failed: 0, skipped: 0 }
  /** @type {string[]} */
  let notTested = []
  await step('tests', async () => {
    const run = await runTests()
    counts = run.counts
    notTested = run.notTested
    return run.passed
  })

  if (interrupted() !== undefined) {
    console.log('\nInterrupted.')
    return 1
  }
  const notNeeded = services.filter(({ needed }) => !needed).map(({ name }) => name)
  const failure = strict && notTested.length > 0
  console.log('\n== summary')
  for (const { name, passed, seconds } of results) {
    console.log(`${passed ? 'ok    ' : 'FAILED'}  ${name} (${seconds.toFixed(1)} s)`)
  }
  if (failure) console.log('FAILED  servers: with CI=true every server that the tests need must be there')
  if (notNeeded.length > 0) console.log(`not needed yet: ${notNeeded.join(', ')}`)
  for (const line of notTested) console.log(`not tested: ${line}`)
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  return failure || results.some(({ passed }) => !passed) ? 1 : 0
}

/** Runs Vitest with the servers it needs, and puts away afterwards what was started for it. */
async function runTests() {
  const report = await mkdtemp(join(tmpdir(), 'redrive-test-'))
  const env = { ...process.env }
  const notTested = []
  const stops = []
  try {
    const needed = services.filter(service => service.needed)
    // All at once: those that have to be started take seconds.
    const found = await Promise.all(needed.map(async service => ({ service, provided: await provide(service) })))
    for (const { service, provided } of found) {
      delete env[service.variable]
      if ('missing' in provided) {
        notTested.push(`${service.name} (${provided.missing})`)
        continue
      }
      env[service.variable] = provided.address
      if (provided.stop) stops.push(provided.stop)
    }
    const file = join(report, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
    const passed =
      interrupted() === undefined && (await runTool('vitest/vitest.mjs', ['run', ...reporters, ...args], { env })) === 0
    return { passed, counts: await countTests(file, passed), notTested }
  } finally {
    for (const stop of stops) await stop()
    await rm(report, { recursive: true, force: true })
  }
}

/**
 * Vitest's numbers. A file that could not even be loaded has no tests to count: it counts as one failure.
 * @param {string} file
 * @param {boolean} passed
 */
async function countTests(file, passed) {
  const report = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  const unloadable = (report.testResults ?? []).filter(
    (/** @type {{ status: string, assertionResults: { status: string }[] }} */ { status, assertionResults }) =>
      status === 'failed' && !assertionResults.some(test => test.status === 'failed'),
  )
  const failed = (report.numFailedTests ?? 0) + unloadable.length
  return {
    passed: report.numPassedTests ?? 0,
    failed: passed ? failed : Math.max(failed, 1),
    skipped: (report.numPendingTests ?? 0) + (report.numTodoTests ?? 0),
  }
}
