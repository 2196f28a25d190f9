// Stands in for the package `redrive` in the documentation's examples: the public API, except that ':memory:' is a
// schema of its own in one shared embedded database, because starting one for each example would take minutes.
import { PGlite } from '@electric-sql/pglite'
import { openRedrive as open, type Redrive, type RedriveOptions } from '../../src/index.js'

export * from '../../src/index.js'

let shared: Promise<PGlite> | undefined
let schemas = 0
const opened = new Set<Redrive>()

export async function openRedrive(options: RedriveOptions = {}): Promise<Redrive> {
  if (options.database !== ':memory:') throw new Error('an example may only open the database :memory:')
  shared ??= PGlite.create()
  const pglite = await shared
  const query = async (text: string, params: unknown[]) =>
    params.length > 0 ? pglite.query(text, params) : { rows: (await pglite.exec(text)).at(-1)?.rows ?? [] }
  schemas += 1
  const redrive = await open({ env: {}, ...options, database: { query }, schema: `example_${schemas}` })
  opened.add(redrive)
  return redrive
}

/** Closes what an example left open. */
export async function closeAll(): Promise<void> {
  await Promise.all([...opened].map(redrive => redrive.close({ graceMs: 0 })))
  opened.clear()
}
