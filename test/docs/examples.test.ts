// The examples in README and docs are true: each that is marked to be is type-checked, and run, and what it logs is what
// the page says it logs (`console.log(x) // → 3`; an `…` stands for anything).
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, test } from 'vitest'
import { type Block, blocksOf, ROOT, readPages } from './pages.js'

const run = promisify(execFile)

const blocks = readPages().flatMap(blocksOf)
const examples = blocks.filter(({ language, mark }) => language === 'ts' && mark !== 'shown')
const runnable = examples.filter(({ mark }) => mark === 'run')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-docs-'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig()))
  for (const example of examples) await writeFile(fileOf(example), `${example.code}\nexport {}\n`)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const fileOf = ({ page, line }: Block) => join(folder, `${page.replace(/\W+/g, '_')}_${line}.ts`)

const tsconfig = () => ({
  extends: join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    paths: {
      redrive: [join(ROOT, 'test/docs/redrive-for-examples.ts')],
      'redrive/http': [join(ROOT, 'src/http/index.ts')],
      'redrive/metrics': [join(ROOT, 'src/telemetry/index.ts')],
      'redrive/testing': [join(ROOT, 'src/testing/index.ts')],
      'redrive/transports/redis': [join(ROOT, 'src/redis.ts')],
      'redrive/transports/rabbitmq': [join(ROOT, 'src/transport/transports/rabbitmq.ts')],
    },
    typeRoots: [join(ROOT, 'node_modules/@types')],
    noUnusedLocals: false,
  },
  include: ['*.ts'],
})

it('there are examples, and each logs only what its page says', () => {
  expect(runnable.length).toBeGreaterThan(8)
  for (const { page, line, code } of runnable) {
    const silent = code.split('\n').filter(text => text.includes('console.log') && !text.includes('// → '))
    expect(silent, `${page}:${line}: say what is logged with // →`).toEqual([])
  }
})

test('the examples compile', { timeout: 120_000 }, async () => {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '--noEmit', '--project', folder]).catch(error => error)
  expect(placed(stdout)).toBe('')
})

test('the examples run and log what they say', { timeout: 180_000 }, async () => {
  const args = ['--import', 'tsx', join(ROOT, 'test/docs/run-examples.ts'), ...runnable.map(fileOf)]
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, NO_COLOR: '1', TSX_TSCONFIG_PATH: join(folder, 'tsconfig.json') }
  const { stdout, stderr } = await run(process.execPath, args, { cwd: ROOT, env }).catch(error => error)
  const results = String(stdout)
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Result)
  expect(results.length, stderr).toBe(runnable.length)
  for (const [index, { logged, error }] of results.entries()) {
    const example = runnable[index] as Block
    const where = `${example.page}:${example.line}`
    expect(error, where).toBeUndefined()
    const said = [...example.code.matchAll(/console\.log\(.*\) \/\/ → (.*)$/gm)].map(match => match[1] as string)
    expect(logged.length, `${where} logged ${JSON.stringify(logged)}`).toBe(said.length)
    for (const [at, text] of said.entries()) expect(logged[at]?.replace(/\s+/g, ' '), where).toMatch(pattern(text))
  }
})

interface Result {
  readonly file: string
  readonly logged: readonly string[]
  readonly error?: string
}

const pattern = (text: string) =>
  new RegExp(
    `^${text
      .split('…')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[\\s\\S]*')}$`,
  )

/** Compiler messages with the page in the place of the extracted file. */
function placed(output: string): string {
  return examples.reduce(
    (text, example) => {
      const name = fileOf(example).slice(folder.length + 1)
      return text.replaceAll(name, `${example.page} (block at line ${example.line})`)
    },
    String(output ?? ''),
  )
}
