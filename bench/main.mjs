// The bench itself, under the Node that everyone runs on.
import { writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { now } from './harness/clock.mjs'
import { findPostgres } from './harness/postgres.mjs'
import { killEveryProcess } from './harness/process.mjs'
import { startRedis } from './harness/redis.mjs'
import { questionText, summaryText } from './harness/report.mjs'
import { ask } from './harness/rounds.mjs'
import { questions } from './questions/index.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } },
})
const unknown = positionals.filter(name => !questions.some(question => question.name === name))
if (unknown.length > 0) {
  console.error(`There is no question "${unknown[0]}". There are: ${questions.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
const asked = positionals.length > 0 ? questions.filter(({ name }) => positionals.includes(name)) : questions

let stopping = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    stopping = true
    killEveryProcess()
  })
}

const postgres = await findPostgres()
const redis = await startRedis()
const machine = `Node ${process.versions.node}, ${cpus().length} CPUs (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GB`
const facts = [machine, postgres.facts, 'missing' in redis ? `No Redis: ${redis.missing}` : redis.facts]
console.log(facts.join('\n'))

/** @param {string} line */
const log = line => console.error(`  ${line}`)
const answers = []
try {
  for (const question of asked) {
    if (stopping) break
    const startedAt = now()
    const { rows, verdicts } = await ask(question, { postgres, redis }, { ...values, log, stopped: () => stopping })
    console.log(questionText(question, rows))
    const seconds = Math.round((now() - startedAt) / 1000)
    log(`${question.name} took ${seconds} s`)
    answers.push({ seconds, question: question.name, title: question.title, rows, verdicts })
  }
} finally {
  if (!('missing' in redis)) await redis.close()
  await postgres.close()
}
console.log(summaryText(answers))
if (values.json) await writeFile(values.json, `${JSON.stringify({ facts, quick: values.quick, answers }, null, 2)}\n`)
const failed = answers.some(
  ({ rows, verdicts }) => rows.some(row => row.failed) || verdicts.some(({ passed }) => passed === false),
)
process.exitCode = failed ? 1 : 0
