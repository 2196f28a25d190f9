// The rules of the house, as data and as functions from sources to violations: which room may import which, no
// cycles, and the things that have one place only (SQL, drivers, time and chance, waiting).
import { posix } from 'node:path'
import type { Import, Source } from './source.js'

export interface Violation {
  readonly file: string
  readonly line: number
  readonly message: string
}

/** `domain` for src/domain/…, `root` for the files directly in src/. */
type Room = string

/** The composition root: src/index.ts, src/main.ts and their like put the rooms together and may import all. */
const ROOT = 'root'

const ROOMS: Readonly<Record<Room, readonly Room[]>> = {
  domain: [],
  policy: ['domain'],
  ledger: ['domain'],
  // The Postgres transport moves rows, and SQL lives only in ledger/: it asks the ledger.
  transport: ['domain', 'ledger'],
  // runtime and operator never import each other: they meet in the ledger.
  runtime: ['domain', 'policy', 'ledger', 'transport'],
  operator: ['domain', 'policy', 'ledger'],
  // What is logged is redacted by the pure rules of policy/.
  telemetry: ['domain', 'policy'],
  // What is shown is redacted by the pure rules of policy/.
  http: ['domain', 'policy', 'operator', 'telemetry'],
  // The command line is a user of the API and of the library: it takes shapes from the one, and opens the other.
  cli: ['domain', 'operator', 'http', 'telemetry', 'demo', ROOT],
  // The public test kit is built on the inside and on the public API, but serves no wire.
  testing: ['domain', 'policy', 'ledger', 'transport', 'runtime', 'operator', 'telemetry', ROOT],
  // What `npm start` shows: written on the public API, as an example of it.
  demo: ['domain', ROOT],
}

/** A driver is imported only by its adapter: `pg.ts`, and the parts it is made of, `pg-….ts`. */
const DRIVERS: Readonly<Record<string, { adapter: string; typesIn?: string }>> = {
  pg: { adapter: 'src/ledger/databases/pg', typesIn: 'src/ledger/' },
  '@electric-sql/pglite': { adapter: 'src/ledger/databases/pglite' },
  amqplib: { adapter: 'src/transport/transports/rabbitmq' },
  ioredis: { adapter: 'src/transport/transports/redis' },
  redis: { adapter: 'src/transport/transports/redis' },
  // It takes seven megabytes, and a worker serves nobody.
  'node:http': { adapter: 'src/http/serve' },
}

const CLOCK = 'src/domain/clock.ts'
const TIME_OR_CHANCE =
  /(?<![.\w$])(?:globalThis\.)?(?:Date\.now\b|new\s+Date\s*(?:\(\s*\)|(?![\s(\w$]))|Math\.random\b|(?:setTimeout|setInterval|setImmediate)\b|performance\.now\b|process\.hrtime\b|AbortSignal\.timeout\b)/g
const TIMER_MODULE = /^(?:node:)?timers(?:\/promises)?$/

// `Promise.resolve(x).catch(…)` waits for nothing: it silences a promise that a user's function gave by mistake.
const WAITING =
  /(?<![.\w$])(?:(?:async|await)\b(?!\s*:)|new\s+Promise\b|Promise\s*(?=<)|Promise\.(?!resolve\b)\w+)|\.then\b/g

// Statements as they are written here, anywhere in a literal; and in any case of letters where one starts with them.
const SQL =
  /\b(?:INSERT\s+INTO|UPDATE\s+[\w."$]+\s+SET|DELETE\s+FROM|MERGE\s+INTO|SELECT\s[\s\S]*?\bFROM\s|(?:CREATE|ALTER|DROP|TRUNCATE)\s+(?:TABLE|INDEX|VIEW|SCHEMA|TYPE|FUNCTION)|FOR\s+UPDATE\s+SKIP\s+LOCKED)\b|\bSELECT\s+[\w.]+\(/
const SQL_AT_START = /^\s*(?:insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|select\s[\s\S]*?\sfrom\s)/i

export function checkArchitecture(sources: readonly Source[]): Violation[] {
  const perFile = [directions, drivers, timeAndChance, waitingPolicy, sqlOutsideLedger]
  return [...sources.flatMap(source => perFile.flatMap(rule => rule(source))), ...cycles(sources)]
}

export function directions(source: Source): Violation[] {
  if (source.path.startsWith('apps/')) return appDirections(source)
  const from = roomOf(source.path)
  if (from === undefined) return []
  const allowed = ROOMS[from]
  if (from !== ROOT && !allowed)
    return [at(source, 0, `src/${from}/ is not a room: name it in test/architecture/rules.ts`)]
  return source.imports.flatMap(found => {
    const target = resolve(source, found)
    if (target === undefined) return []
    const to = roomOf(target)
    if (to === undefined) return [at(source, found.offset, `src/ may not import ${target}`)]
    if (from === to || from === ROOT || allowed?.includes(to)) return []
    const may = allowed?.length ? `only ${allowed.join(', ')}` : 'no other room'
    return [at(source, found.offset, `${from} may not import ${to} (${target}); it may import ${may}`)]
  })
}

function appDirections(source: Source): Violation[] {
  return source.imports.flatMap(found => {
    const target = resolve(source, found)
    if (target === undefined || target === 'src/index.ts' || target.startsWith('apps/')) return []
    return [at(source, found.offset, `an app may use only the public API (redrive), not ${target}`)]
  })
}

export function drivers(source: Source): Violation[] {
  if (!source.path.startsWith('src/')) return []
  return source.imports.flatMap(found => {
    const driver = Object.entries(DRIVERS).find(
      ([name]) => found.specifier === name || found.specifier.startsWith(`${name}/`),
    )
    if (!driver) return []
    const [name, { adapter, typesIn }] = driver
    if (source.path === `${adapter}.ts` || source.path.startsWith(`${adapter}-`)) return []
    if (found.typeOnly && typesIn !== undefined && source.path.startsWith(typesIn)) return []
    return [at(source, found.offset, `the driver ${name} may be imported only by ${adapter}.ts`)]
  })
}

export function timeAndChance(source: Source): Violation[] {
  if (!source.path.startsWith('src/') || source.path === CLOCK) return []
  const message = (what: string) => `${what}: time and chance come from ${CLOCK} only`
  return [
    ...[...source.code.matchAll(TIME_OR_CHANCE)].map(match => at(source, match.index, message(match[0]))),
    ...source.imports
      .filter(({ specifier }) => TIMER_MODULE.test(specifier))
      .map(({ specifier, offset }) => at(source, offset, message(specifier))),
  ]
}

export function waitingPolicy(source: Source): Violation[] {
  if (roomOf(source.path) !== 'policy') return []
  return [...source.code.matchAll(WAITING)].map(match => at(source, match.index, `${match[0]}: policy never awaits`))
}

export function sqlOutsideLedger(source: Source): Violation[] {
  if (!source.path.startsWith('src/') || roomOf(source.path) === 'ledger') return []
  return source.literals.flatMap(({ text, offset }) => {
    const found = SQL.exec(text) ?? SQL_AT_START.exec(text)
    return found ? [at(source, offset, `SQL outside ledger/: ${shortened(found[0])}`)] : []
  })
}

/** Import cycles between files, type imports included: each cycle once, from its first file in order of names. */
export function cycles(sources: readonly Source[]): Violation[] {
  const byPath = new Map(sources.map(source => [source.path, source]))
  const done = new Set<string>()
  const violations: Violation[] = []

  const visit = (source: Source, trail: readonly string[]) => {
    if (done.has(source.path)) return
    const here = [...trail, source.path]
    for (const found of source.imports) {
      const target = resolve(source, found)
      const next = target === undefined ? undefined : byPath.get(target)
      if (!next) continue
      const start = here.indexOf(next.path)
      if (start === -1) visit(next, here)
      else violations.push(at(source, found.offset, `import cycle: ${[...here.slice(start), next.path].join(' → ')}`))
    }
    done.add(source.path)
  }

  for (const path of [...byPath.keys()].sort()) visit(byPath.get(path) as Source, [])
  return violations
}

function roomOf(path: string): Room | undefined {
  const [top, room, ...rest] = path.split('/')
  if (top !== 'src' || room === undefined) return undefined
  return rest.length === 0 ? ROOT : room
}

/** The project's file that an import means; undefined for a package. */
function resolve(source: Source, { specifier }: Import): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  return posix.join(posix.dirname(source.path), specifier).replace(/\.js$/, '.ts')
}

const at = (source: Source, offset: number, message: string): Violation => ({
  file: source.path,
  line: source.lineOf(offset),
  message,
})

const shortened = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, 60)
