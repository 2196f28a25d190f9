// A Redrive as a user opens one, on each kind of database, for stories about the library. One for each test file and
// kind is enough: stories keep apart by the names of their queues. Closed when the file is done.
import { afterAll } from 'vitest'
import type { EventName, Events } from '../../src/domain/event.js'
import { openRedrive, type Redrive, type RedriveOptions } from '../../src/index.js'
import type { AuditRecord } from '../../src/ledger/audit.js'
import { readAudit } from '../../src/ledger/audit.js'
import type { Database } from '../../src/ledger/database.js'
import { embeddedCopy, freshDatabase } from './databases.js'
import { silent } from './runtime.js'

export interface Library {
  readonly redrive: Redrive
  /** The server's address; undefined when embedded. */
  readonly url: string | undefined
  readonly db: Database
  next<Name extends EventName>(name: Name, matches?: (event: Events[Name]) => boolean): Promise<Events[Name]>
  /** What was written about a thing, newest first. */
  audit(targetType: string, target: string): Promise<AuditRecord[]>
}

export type LibraryKind = 'memory' | 'server'

export const LIBRARIES: readonly { readonly name: string; readonly kind: LibraryKind }[] = [
  { name: 'embedded, in memory', kind: 'memory' },
  { name: 'Postgres server', kind: 'server' },
]

const open = new Set<Redrive>()
afterAll(async () => {
  for (const redrive of open) await redrive.close({ graceMs: 0 })
})

export async function openLibrary(kind: LibraryKind, options: RedriveOptions = {}): Promise<Library> {
  const fresh = kind === 'server' ? await freshDatabase('server', { migrated: false }) : undefined
  const redrive = await openRedrive({
    database: fresh?.url ?? (await embeddedCopy()),
    env: {},
    logger: silent,
    pollMs: 100,
    ...options,
  })
  open.add(redrive)
  // The library keeps its database to itself; what in-process calls use leads to it.
  const { db } = redrive.inProcess as unknown as { db: Database }
  return {
    redrive,
    db,
    url: fresh?.url,
    next: (name, matches = () => true) =>
      new Promise(resolve => {
        const stop = redrive.on(name, event => {
          if (!matches(event)) return
          stop()
          resolve(event)
        })
      }),
    audit: (targetType, target) => readAudit(db, { targetType, target, limit: 100 }),
  }
}
