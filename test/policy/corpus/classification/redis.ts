// ioredis and node-redis against a server that answers every command with the same error.
import { ClientClosedError, createClient, ReconnectStrategyError, WatchError } from '@redis/client'
import { Redis } from 'ioredis'
import { closedPort, withLineServer, withSocketServer } from '../servers/lines.js'
import { caught, type Family, like, type Shape, shape } from './shape.js'

/** `GET` is refused with the given text, all else is fine. */
const refusing = (text: string) => ({
  answer: (line: string) => (line === 'get' || line === 'GET' ? `-${text}\r\n` : undefined),
})

const quick = {
  protocol: 2 as const,
  lazyConnect: true,
  enableReadyCheck: false,
  disableClientInfo: true,
  retryStrategy: () => null,
}

const byIoredis = (text: string) =>
  withLineServer(refusing(text), async port => {
    const client = new Redis({ ...quick, port, host: '127.0.0.1' })
    client.on('error', () => {})
    try {
      return await caught(() => client.get('a'))
    } finally {
      client.disconnect()
    }
  })

const byNodeRedis = (text: string) =>
  withLineServer(refusing(text), async port => {
    const client = createClient({
      RESP: 2,
      socket: { port, host: '127.0.0.1', reconnectStrategy: false },
      disableClientInfo: true,
    } as never)
    client.on('error', () => {})
    await client.connect()
    try {
      return await caught(() => client.get('a'))
    } finally {
      client.destroy()
    }
  })

const REPLIES: readonly (readonly [string, Shape['kind']])[] = [
  ['LOADING Redis is loading the dataset in memory', 'transient'],
  ["READONLY You can't write against a read only replica.", 'transient'],
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.', 'transient'],
  ['MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no.', 'transient'],
  ['CLUSTERDOWN The cluster is down', 'transient'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'transient'],
  ['NOREPLICAS Not enough good replicas to write.', 'transient'],
  ["OOM command not allowed when used memory > 'maxmemory'.", 'system'],
  ['MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.', 'system'],
  ['ERR max number of clients reached', 'system'],
  ['NOAUTH Authentication required.', 'authentication'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'authentication'],
  ["NOPERM User default has no permissions to run the 'get' command", 'authentication'],
  ['ERR invalid password', 'authentication'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'permanent'],
  ["ERR unknown command 'get', with args beginning with: 'a'", 'permanent'],
  ["CROSSSLOT Keys in request don't hash to the same slot", 'permanent'],
]

export const redis: Family = {
  family: 'Redis',
  shapes: [
    ...REPLIES.map(([text, kind]) => shape(`ioredis: ${text}`, kind, () => byIoredis(text), 'Redis')),
    ...REPLIES.filter((_, index) => index % 3 === 0).map(([text, kind]) =>
      shape(`node-redis: ${text}`, kind, () => byNodeRedis(text), 'Redis'),
    ),
    shape('ioredis: a closed port', 'network', async () => {
      const client = new Redis({ ...quick, port: await closedPort(), host: '127.0.0.1' })
      client.on('error', () => {})
      return caught(() => client.connect())
    }),
    shape('ioredis: retried and given up', 'network', async () => {
      const port = await closedPort()
      const client = new Redis({ ...quick, port, host: '127.0.0.1', retryStrategy: () => 1, maxRetriesPerRequest: 1 })
      client.on('error', () => {})
      const thrown = await caught(() => client.get('a'))
      client.disconnect()
      return thrown
    }),
    shape('ioredis: hung up', 'network', () =>
      withLineServer({ answer: () => 'hang up' }, async port => {
        const client = new Redis({ ...quick, port, host: '127.0.0.1' })
        client.on('error', () => {})
        return caught(() => client.get('a'))
      }),
    ),
    shape('ioredis: no answer in time', 'transient', () =>
      withSocketServer(
        () => {},
        async port => {
          const client = new Redis({ ...quick, port, host: '127.0.0.1', commandTimeout: 20 })
          client.on('error', () => {})
          const thrown = await caught(() => client.get('a'))
          client.disconnect()
          return thrown
        },
      ),
    ),
    shape('ioredis: used while there is no connection', 'network', async () => {
      const client = new Redis({ ...quick, enableOfflineQueue: false, port: await closedPort() })
      client.on('error', () => {})
      return caught(() => client.get('a'))
    }),
    shape('ioredis: no sentinel answers', 'network', () =>
      like('Error', 'All sentinels are unreachable. Retrying from scratch after 10ms.'),
    ),
    shape('ioredis: the cluster is gone', 'network', () =>
      like('ClusterAllFailedError', 'Failed to refresh slots cache.', {
        lastNodeError: new Error('Connection is closed.'),
      }),
    ),
    shape('node-redis: a closed port', 'network', async () => {
      const client = createClient({ socket: { port: await closedPort(), host: '127.0.0.1', reconnectStrategy: false } })
      client.on('error', () => {})
      return caught(() => client.connect())
    }),
    shape('node-redis: used after it was closed', 'network', () => caught(() => createClient().get('a'))),
    shape('node-redis: closed', 'network', () => new ClientClosedError()),
    shape(
      'node-redis: the strategy gave up',
      'network',
      () => new ReconnectStrategyError(new Error('enough'), new Error('read ECONNRESET')),
    ),
    shape('node-redis: a watched key changed', 'transient', () => new WatchError()),
  ],
}
