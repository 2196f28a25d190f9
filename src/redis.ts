// What `redrive/transports/redis` exports: Redis as a carrier of live jobs. It needs `ioredis` to be installed.
export { type RedisOptions, redis } from './transport/transports/redis.js'
