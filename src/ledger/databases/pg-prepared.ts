// Names of prepared statements, by their text: behind a pooler that hands connections around, another program's statement
// must not be taken for ours. Such a pooler may give us a connection that does not have our statement: nothing has run then,
// and nothing is prepared any more from there on.
import { createHash } from 'node:crypto'

const NO_SUCH_STATEMENT = '26000'
const STATEMENT_EXISTS = '42P05'

export interface PreparedNames {
  nameOf(text: string): string | undefined
  /** True: the statement was not where it should be. */
  wasLost(error: Error & { code?: string }): boolean
}

export function preparedNames(): PreparedNames {
  const names = new Map<string, string>()
  let isUsable = true
  return {
    nameOf(text) {
      if (!isUsable) return undefined
      const name = names.get(text) ?? `redrive_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
      names.set(text, name)
      return name
    },
    wasLost({ code }) {
      if (code !== NO_SUCH_STATEMENT && code !== STATEMENT_EXISTS) return false
      isUsable = false
      return true
    },
  }
}
