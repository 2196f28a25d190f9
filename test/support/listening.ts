// Somebody who listens on a channel, as a worker that stands by does; what is said there is kept.
import type { Database } from '../../src/ledger/database.js'

export async function listening(db: Database, secret: string): Promise<string[]> {
  const heard: string[] = []
  await new Promise<void>((resolve, reject) => {
    const listener = {
      onUp: resolve,
      onMessage: (message: string, on: string) => void (on === secret && heard.push(message)),
    }
    if (!db.listen({ open: `all of ${secret}`, secret }, listener)) reject(new Error('This database does not listen'))
  })
  return heard
}
