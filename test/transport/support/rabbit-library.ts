// A Redrive on RabbitMQ and a server ledger, each behind a network that a test can break.
import { onTestFinished } from 'vitest'
import { openRedrive, type Redrive, type RedriveOptions } from '../../../src/index.js'
import type { Database } from '../../../src/ledger/database.js'
import { type RabbitmqOptions, rabbitmq } from '../../../src/transport/transports/rabbitmq.js'
import { freshDatabase } from '../../support/databases.js'
import { type Proxy as Network, openProxy } from '../../support/proxy.js'
import { cleanQueues, freshPrefix, type RawRabbit, rabbitmqUrl, rawRabbit } from '../../support/rabbitmq.js'
import { silent } from '../../support/runtime.js'

export interface RabbitLibrary {
  readonly redrive: Redrive
  /** A way into the ledger that no test breaks. */
  readonly db: Database
  readonly broker: Network
  readonly ledger: Network
  readonly raw: RawRabbit
  /** The name in RabbitMQ of the queue `mail`. */
  readonly queue: string
  readonly prefix: string
  /** Another process on the same ledger and the same queues, as far as one process can be two. */
  another(options?: RedriveOptions): Promise<Redrive>
}

export async function openRabbitLibrary(
  settings: Partial<RabbitmqOptions> = {},
  options: RedriveOptions = {},
): Promise<RabbitLibrary> {
  const url = await rabbitmqUrl()
  const fresh = await freshDatabase('server')
  const [broker, ledger] = [await openProxy(url), await openProxy(fresh.url as string)]
  const open: Redrive[] = []
  onTestFinished(async () => {
    await Promise.all(open.map(one => one.close({ graceMs: 0 })))
    await Promise.all([broker.close(), ledger.close()])
  })
  const prefix = freshPrefix()
  cleanQueues(`${prefix}mail`)
  const another = async (more: RedriveOptions = {}) => {
    const redrive = await openRedrive({
      database: ledger.url,
      transports: { rabbitmq: rabbitmq({ url: broker.url, prefix, publishTimeoutMs: 1_000, ...settings }) },
      queues: { mail: { transport: 'rabbitmq' } },
      env: {},
      logger: silent,
      pollMs: 100,
      poolSize: 4,
      ...options,
      ...more,
    })
    open.push(redrive)
    return redrive
  }
  const redrive = await another()
  return { redrive, db: fresh.db, broker, ledger, raw: await rawRabbit(url), queue: `${prefix}mail`, prefix, another }
}
