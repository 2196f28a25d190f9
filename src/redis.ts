// What `redrive/transports/redis` exports: Redis as a carrier of live jobs, and a Redis list as a way in. It needs
// `ioredis` to be installed.
export { type Inbox, type InboxOptions, openInbox } from './open-inbox.js'
export type { InboxJob } from './runtime/inbox.js'
export { type RedisOptions, redis } from './transport/transports/redis.js'
