// Tells of causes that are new and of resolved ones that came back. What fails in this process is only noted here; about
// once a second, if there is something to say, the ledger's groups are brought up to date with it. What a process cannot
// say any more, recovery says.
import type { Announce } from '../domain/event.js'
import { type GroupNews, noticeFailures } from '../ledger/group-notice.js'
import { loop } from './loop.js'
import type { Runtime } from './runtime.js'

export interface GroupWatch {
  /** A failure of this cause was recorded. */
  failed(fingerprint: string): void
  /** Says what is left to say. */
  stop(): Promise<void>
}

const PAUSE_MS = 500
const IDLE_MS = 60_000
/** More causes than this wait for recovery: nobody reads so many at once. */
const MOST_NOTED = 20_000

export function groupWatch({ db, clock, random, announce }: Runtime): GroupWatch {
  let noted = new Set<string>()
  const onError = (error: unknown) => announce('error', () => ({ where: 'groups', error }))

  const tell = async () => {
    const told = noted
    noted = new Set()
    try {
      announceNews(announce, await noticeFailures(db, told))
    } catch (error) {
      for (const fingerprint of told) note(fingerprint)
      throw error
    }
  }
  const note = (fingerprint: string) => {
    if (noted.size < MOST_NOTED) noted.add(fingerprint)
  }
  const watching = loop({
    clock,
    random,
    onError,
    step: async () => {
      if (noted.size > 0) await tell()
      return noted.size > 0 ? PAUSE_MS : IDLE_MS
    },
  })
  let started = false

  return {
    failed(fingerprint) {
      const first = noted.size === 0
      note(fingerprint)
      if (!first) return
      // Nothing runs for a process in which nothing fails.
      if (!started) watching.start()
      started = true
      watching.nudgeIn(PAUSE_MS)
    },
    async stop() {
      await watching.stop()
      if (noted.size > 0) await tell().catch(onError)
    },
  }
}

export function announceNews(announce: Announce, news: readonly GroupNews[]): void {
  for (const { what, ...group } of news) announce(`group.${what}`, () => group)
}
