// The reference names what there is, no less and no more: exports, options, events, settings, views, states and moves.
import { readFileSync } from 'node:fs'
import { describe, expect, it, test } from 'vitest'
import { INITIAL_STATES, MOVES, STATES } from '../../src/domain/lifecycle.js'
import { sql } from '../../src/ledger/database.js'
import { freshDatabase } from '../support/databases.js'
import { blocksOf, codeIn, ROOT, readPage, readPages, tableBelow } from './pages.js'

const source = (path: string) => readFileSync(ROOT + path, 'utf8')
const firstCells = (page: ReturnType<typeof readPage>, heading: string) =>
  tableBelow(page, heading).flatMap(([cell = '']) => codeIn(cell))

/** The names that a file exports, from its export lists. */
function exportsOf(path: string): string[] {
  const lists = [...source(path).matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map(match => match[1] as string)
  return lists
    .flatMap(list => list.split(',').map(name => name.replace(/\btype\b/, '').trim()))
    .filter(name => name !== '')
}

/** The keys of an interface, as it is written. */
function keysOf(path: string, name: string): string[] {
  const [, body] = new RegExp(`interface ${name}\\b[^{]*\\{([\\s\\S]*?)^\\}`, 'm').exec(source(path)) ?? []
  if (body === undefined) throw new Error(`${path} has no interface ${name}`)
  return [...body.matchAll(/^ {2}(?:readonly )?'?([\w.]+)'?\??:/gm)].map(match => match[1] as string)
}

describe('library.md', () => {
  const page = readPage('docs/reference/library.md')
  const named = new Set(codeIn(page.text).flatMap(code => code.match(/[A-Za-z_]\w*/g) ?? []))

  test.each(['src/index.ts', 'src/testing/index.ts'])('names everything that %s exports', path => {
    expect(exportsOf(path).filter(name => !named.has(name))).toEqual([])
  })

  it('names no type that is not exported', () => {
    const types = codeIn(page.text.slice(page.text.indexOf('\n## Types\n')))
    const exported = new Set([...exportsOf('src/index.ts'), ...exportsOf('src/testing/index.ts')])
    expect(types.filter(name => !exported.has(name))).toEqual([])
  })

  it('lists every option of openRedrive and of defineJob', () => {
    expect(firstCells(page, '## Options of openRedrive').sort()).toEqual(
      keysOf('src/open-redrive.ts', 'RedriveOptions').sort(),
    )
    expect(firstCells(page, '## Jobs').sort()).toEqual(keysOf('src/runtime/definition.ts', 'JobOptions').sort())
  })

  it('names every option of enqueue, perform and work', () => {
    const keys = [
      ...keysOf('src/runtime/producer.ts', 'EnqueueOptions'),
      ...keysOf('src/redrive.ts', 'PerformOptions'),
      ...keysOf('src/redrive.ts', 'WorkOptions'),
    ]
    expect(keys.filter(key => !named.has(key))).toEqual([])
  })

  it('lists every event', () => {
    expect(firstCells(page, '## Events').sort()).toEqual(keysOf('src/domain/event.ts', 'Events').sort())
  })
})

test('settings.md lists every variable that is read', () => {
  const variables = (path: string) =>
    [...source(path).matchAll(/'([A-Z][A-Z_]{3,})'/g)].map(match => match[1] as string)
  const read = new Set([...variables('src/settings.ts'), 'NO_COLOR', 'REDRIVE_TOKENS', 'AMQP_URL', 'REDIS_URL'])
  expect(
    firstCells(readPage('docs/operations/settings.md'), '## Variables')
      .filter(name => !/^PG(?!HOST)/.test(name))
      .sort(),
  ).toEqual([...read].sort())
})

test('sql-views.md lists every view and every column', async () => {
  const { db } = await freshDatabase('memory')
  const columns = await db.query<{ view: string; name: string }>(sql`
    SELECT c.relname AS view, a.attname AS name
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relkind = 'v' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('redrive.job'))
    ORDER BY c.relname, a.attnum`)
  const page = readPage('docs/reference/sql-views.md')
  const views = [...new Set(columns.map(({ view }) => view))]
  expect([...page.text.matchAll(/^## (\w+)$/gm)].map(match => match[1]).sort()).toEqual(views.sort())
  for (const view of views) {
    expect(firstCells(page, `## ${view}`), view).toEqual(
      columns.filter(column => column.view === view).map(({ name }) => name),
    )
  }
})

test('the SQL that is marked to run runs', async () => {
  const { db } = await freshDatabase('memory')
  const blocks = readPages()
    .flatMap(blocksOf)
    .filter(({ language, mark }) => language === 'sql' && mark === 'run')
  expect(blocks.length).toBeGreaterThan(0)
  for (const { page, line, code } of blocks) {
    for (const text of code.split(/;\n|;$/).filter(text => text.trim() !== '')) {
      await expect(db.query({ text }), `${page}:${line}: ${text}`).resolves.toBeDefined()
    }
  }
})

test('life-of-a-job.md draws the moves there are, and describes every state', () => {
  const page = readPage('docs/guide/life-of-a-job.md')
  const arrows = [
    ...INITIAL_STATES.map(state => `[*] --> ${state}`),
    ...STATES.flatMap(from => MOVES[from].map(to => `${from} --> ${to}`)),
    ...STATES.filter(state => MOVES[state].length === 0).map(state => `${state} --> [*]`),
  ]
  const drawn = /```mermaid\nstateDiagram-v2\n([\s\S]*?)```/.exec(page.text)?.[1]
  expect(
    drawn
      ?.split('\n')
      .map(line => line.trim())
      .filter(line => line !== '')
      .sort(),
  ).toEqual(arrows.sort())
  expect(firstCells(page, '## States')).toEqual([...STATES])
})

test('invariants.md tells of nine', () => {
  const headings = [...readPage('docs/guide/invariants.md').text.matchAll(/^## (\d)\. /gm)].map(match =>
    Number(match[1]),
  )
  expect(headings).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
})
