// A process of its own that takes entries from a Redis list: node --import tsx inbox-process.ts <config as JSON>. Without
// unique keys, so that only the tickets of the entries keep one from becoming two jobs.
import { openRedrive } from '../../../src/index.js'
import { openInbox } from '../../../src/redis.js'

const config = JSON.parse(process.argv[2] as string) as {
  readonly database: string
  readonly redis: string
  readonly list: string
  readonly claimAfterMs: number
}

const redrive = await openRedrive({ database: config.database, env: { LOG_LEVEL: 'silent' } })
openInbox(redrive, {
  url: config.redis,
  list: config.list,
  job: 'count',
  queue: 'counting',
  claimAfterMs: config.claimAfterMs,
  map: payload => ({ payload }),
})
process.stdin.on('end', () => process.exit()) // nobody is there any more
process.stdin.resume()
