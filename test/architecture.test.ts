// The code keeps to the architecture: rooms import in one direction, and what has one place stays there. The
// second half breaks each rule on purpose, so that a rule that catches nothing is noticed.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  checkArchitecture,
  cycles,
  directions,
  drivers,
  sqlOutsideLedger,
  timeAndChance,
  type Violation,
  waitingPolicy,
} from './architecture/rules.js'
import { readSource, type Source } from './architecture/source.js'

const ROOT = new URL('../', import.meta.url)

function sourcesBelow(folder: string): Source[] {
  if (!existsSync(new URL(folder, ROOT))) return []
  return readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .map(name => `${folder}${name.replaceAll('\\', '/')}`)
    .filter(path => path.endsWith('.ts') && !path.includes('node_modules/'))
    .map(path => readSource(path, readFileSync(new URL(path, ROOT), 'utf8')))
}

const told = (violations: readonly Violation[]) =>
  violations.map(({ file, line, message }) => `${file}:${line} ${message}`)

test('the sources keep to the architecture', () => {
  const sources = [...sourcesBelow('src/'), ...sourcesBelow('apps/')]
  expect(sources.length).toBeGreaterThan(5)
  expect(told(checkArchitecture(sources))).toEqual([])
})

describe('directions', () => {
  const importing = (path: string, specifier: string) =>
    told(directions(readSource(path, `// a file\nimport { x } from '${specifier}'\n`)))

  test.each([
    ['src/domain/job.ts', '../policy/decide.js', 'domain may not import policy'],
    ['src/policy/decide.ts', '../ledger/jobs.js', 'policy may not import ledger'],
    ['src/ledger/jobs.ts', '../transport/transport.js', 'ledger may not import transport'],
    ['src/runtime/worker.ts', '../operator/redrive.js', 'runtime may not import operator'],
    ['src/operator/redrive.ts', '../runtime/worker.js', 'operator may not import runtime'],
    ['src/telemetry/metrics.ts', '../ledger/jobs.js', 'telemetry may not import ledger'],
    ['src/http/handlers/jobs.ts', '../../ledger/jobs.js', 'http may not import ledger'],
    ['src/testing/faults.ts', '../http/server.js', 'testing may not import http'],
    ['src/runtime/worker.ts', '../index.js', 'runtime may not import root'],
    ['src/runtime/worker.ts', '../../scripts/run.mjs', 'src/ may not import scripts/run.mjs'],
    ['apps/thumbnails/worker.ts', '../../src/domain/job.js', 'an app may use only the public API'],
  ])('%s may not import %s', (path, specifier, message) => {
    expect(importing(path, specifier)).toEqual([expect.stringContaining(`${path}:2 ${message}`)])
  })

  test.each([
    ['src/policy/decide.ts', '../domain/job.js'],
    ['src/transport/transports/postgres.ts', '../../ledger/claim.js'],
    ['src/runtime/executor.ts', '../policy/decide.js'],
    ['src/ledger/databases/pg.ts', '../database.js'],
    ['src/main.ts', './runtime/worker.js'],
    ['src/domain/ids.ts', 'node:crypto'],
    ['apps/thumbnails/worker.ts', 'redrive'],
    ['apps/thumbnails/worker.ts', './ffmpeg.js'],
  ])('%s may import %s', (path, specifier) => {
    expect(importing(path, specifier)).toEqual([])
  })

  test('a folder nobody named is no room', () => {
    expect(told(directions(readSource('src/utils/misc.ts', '')))).toEqual([
      expect.stringContaining('src/utils/ is not a room'),
    ])
  })
})

describe('imports are found however they are written', () => {
  test.each([
    "import '../policy/a.js'",
    "import type { A } from '../policy/a.js'",
    "import a, { b } from '../policy/a.js'",
    "import * as a from '../policy/a.js'",
    "import {\n  a,\n  type B,\n} from '../policy/a.js'",
    "export * from '../policy/a.js'",
    "export { a } from '../policy/a.js'",
    "const a = await import('../policy/a.js')",
    "type A = import('../policy/a.js').A",
  ])('%s', text => {
    expect(directions(readSource('src/domain/x.ts', text))).toHaveLength(1)
  })

  test('but not in comments, strings or templates', () => {
    const text = "// import '../policy/a.js'\n/* import '../policy/b.js' */\nconst c = `import '../policy/c.js'`\n"
    expect(directions(readSource('src/domain/x.ts', text))).toEqual([])
  })
})

test('a cycle is told with its whole path', () => {
  const sources = [
    readSource('src/domain/a.ts', "import { b } from './b.js'"),
    readSource('src/domain/b.ts', "\nimport type { c } from './c.js'"),
    readSource('src/domain/c.ts', "import { b } from './b.js'"),
  ]
  expect(told(cycles(sources))).toEqual([
    'src/domain/c.ts:1 import cycle: src/domain/b.ts → src/domain/c.ts → src/domain/b.ts',
  ])
  expect(cycles(sources.slice(0, 2))).toEqual([])
})

describe('SQL lives in ledger/', () => {
  test.each([
    "const q = 'INSERT INTO jobs VALUES (1)'",
    'const q = `SELECT $' + '{columns}\n  FROM jobs`',
    'const q = `UPDATE redrive.jobs SET state = 1`',
    'const q = "delete from jobs where id = $1"',
    'const q = `WITH x AS (SELECT id FROM jobs) $' + '{rest}`',
    "const q = 'SELECT pg_notify($1, $2)'",
  ])('%s', text => {
    expect(told(sqlOutsideLedger(readSource('src/runtime/x.ts', `\n${text}`)))).toEqual([
      expect.stringContaining('src/runtime/x.ts:2 SQL outside ledger/'),
    ])
    expect(sqlOutsideLedger(readSource('src/ledger/x.ts', text))).toEqual([])
  })

  test('prose and comments are not SQL', () => {
    const text = "// SELECT a FROM b\nconst message = 'Update the setting, or select another queue from the list'\n"
    expect(sqlOutsideLedger(readSource('src/runtime/x.ts', text))).toEqual([])
  })
})

describe('a driver stays in its adapter', () => {
  test.each([
    ['src/ledger/jobs.ts', "import pg from 'pg'", 1],
    ['src/runtime/worker.ts', "import type { Pool } from 'pg'", 1],
    ['src/index.ts', "const { PGlite } = await import('@electric-sql/pglite')", 1],
    ['src/ledger/database.ts', "import { live } from '@electric-sql/pglite/live'", 1],
    ['src/ledger/database.ts', "import type { Pool } from 'pg'", 0],
    ['src/ledger/databases/pg.ts', "import pg from 'pg'", 0],
    ['src/ledger/databases/pg-listener.ts', "import pg from 'pg'", 0],
    ['src/ledger/databases/pglite.ts', "import pg from 'pg'", 1],
    ['src/ledger/databases/pglite.ts', "import { PGlite } from '@electric-sql/pglite'", 0],
  ])('%s: %s', (path, text, count) => {
    expect(drivers(readSource(path, text))).toHaveLength(count)
  })
})

describe('time and chance have one place', () => {
  test.each([
    'Date.now()',
    'new Date()',
    'Math.random()',
    'setTimeout(f, 1)',
    'globalThis.setInterval(f, 1)',
    'setImmediate(f)',
    'performance.now()',
    'process.hrtime.bigint()',
    'AbortSignal.timeout(1)',
    '`at $' + '{Date.now()}`',
    'a / b; const c = Date.now(); d / e',
    '/[\'"`]/.test(x) && Date.now()',
    "import { setTimeout as sleep } from 'node:timers/promises'",
  ])('%s', text => {
    const found = told(timeAndChance(readSource('src/runtime/x.ts', `\n${text}`)))
    expect(found.length).toBeGreaterThan(0)
    expect(found[0]).toContain('src/runtime/x.ts:2 ')
    expect(timeAndChance(readSource('src/domain/clock.ts', text))).toEqual([])
  })

  test.each(['new Date(row.at)', 'clock.now()', 'socket.setTimeout(5)', "'Date.now()'", '// Date.now()'])(
    '%s is fine',
    text => {
      expect(timeAndChance(readSource('src/runtime/x.ts', text))).toEqual([])
    },
  )
})

test('policy never awaits', () => {
  const text = [
    'export const a = () => Promise.resolve(given).catch(() => undefined)',
    'export async function b(): Promise<void> {',
    '  await c()',
    '  d.then(e)',
    '} // await',
  ].join('\n')
  expect(told(waitingPolicy(readSource('src/policy/x.ts', text)))).toEqual([
    'src/policy/x.ts:2 async: policy never awaits',
    'src/policy/x.ts:2 Promise: policy never awaits',
    'src/policy/x.ts:3 await: policy never awaits',
    'src/policy/x.ts:4 .then: policy never awaits',
  ])
  expect(waitingPolicy(readSource('src/runtime/x.ts', text))).toEqual([])
})
