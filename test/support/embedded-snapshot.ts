// Making an embedded database takes over a second, opening a copy of one a third of that: one is made for the whole run,
// and each test file opens a copy (databases.ts). Vitest runs this once, before the first file.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    embeddedSnapshot: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-snapshot-'))
  const file = join(folder, 'pgdata.tar')
  const made = await PGlite.create()
  await writeFile(file, Buffer.from(await (await made.dumpDataDir('none')).arrayBuffer()))
  await made.close()
  project.provide('embeddedSnapshot', file)
  return () => rm(folder, { recursive: true, force: true })
}
