// The servers the tests can use. Each is taken where it is reachable, else started from installed binaries,
// else reported as not tested. Tests read the address from the environment variable named here.
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { findPostgresBinaries, startTemporaryPostgres } from './postgres.mjs'
import { findRabbitmqServer, startTemporaryRabbitmq } from './rabbitmq.mjs'
import { findRedisServer, startTemporaryRedis } from './redis.mjs'

const PROBE_TIMEOUT_MS = 2000

/**
 * @typedef {object} Service
 * @property {string} name
 * @property {string} variable environment variable with its address; the tests read the same one
 * @property {string} defaultAddress tried when the variable is not set
 * @property {boolean} needed whether any test uses it
 * @property {(address: string) => Promise<string | undefined>} refusal why it cannot be used at this address
 * @property {() => Promise<{ url: string, stop: () => Promise<void> } | undefined>} [start] undefined when it is
 *   not installed
 */

/** @type {readonly Service[]} */
export const services = [
  {
    name: 'Postgres',
    variable: 'REDRIVE_TEST_POSTGRES',
    defaultAddress: localPostgres(),
    needed: true,
    refusal: refusalOfPostgres,
    start: async () => {
      const binaries = findPostgresBinaries()
      return binaries === undefined ? undefined : startTemporaryPostgres(binaries)
    },
  },
  {
    name: 'RabbitMQ',
    variable: 'REDRIVE_TEST_RABBITMQ',
    defaultAddress: 'amqp://127.0.0.1:5672',
    needed: true,
    refusal: refusalOfRabbitmq,
    start: async () => {
      const program = findRabbitmqServer()
      return program === undefined ? undefined : startTemporaryRabbitmq(program)
    },
  },
  {
    name: 'Redis',
    variable: 'REDRIVE_TEST_REDIS',
    defaultAddress: 'redis://127.0.0.1:6379',
    needed: true,
    refusal: refusalOfPort,
    start: async () => {
      const program = findRedisServer()
      return program === undefined ? undefined : startTemporaryRedis(program)
    },
  },
]

/**
 * Finds or starts one service.
 * @param {Service} service
 * @returns {Promise<{ address: string, stop?: () => Promise<void> } | { missing: string }>}
 */
export async function provide(service) {
  const { name, variable } = service
  const address = process.env[variable] || service.defaultAddress
  const refusal = await service.refusal(address).catch(() => 'is not a valid address')
  if (refusal === undefined) {
    console.log(`${name}: using ${shown(address)}`)
    return { address }
  }
  const unusable = `${shown(address)} ${refusal}`
  try {
    const started = await service.start?.()
    if (started === undefined) return { missing: `${unusable}, and it is not installed here; set ${variable}` }
    console.log(`${name}: ${unusable}; started a temporary one at ${shown(started.url)}`)
    return { address: started.url, stop: started.stop }
  } catch (error) {
    return {
      missing: `${unusable}, and a temporary one did not start: ${error instanceof Error ? error.message : error}`,
    }
  }
}

/** As libpq finds it, but by TCP: PGHOST may name a socket folder, which a URL cannot say portably. */
function localPostgres() {
  const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env
  const url = new URL('postgres://127.0.0.1:5432')
  if (PGHOST && !PGHOST.startsWith('/')) url.hostname = PGHOST
  if (PGPORT) url.port = PGPORT
  url.username = PGUSER || userInfo().username
  url.pathname = PGDATABASE || 'postgres'
  return url.href
}

/** @param {string} address */
function refusalOfPort(address) {
  const { hostname, port } = new URL(address)
  /** @type {Promise<string | undefined>} */
  const answer = new Promise(resolve => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), timeout: PROBE_TIMEOUT_MS })
    /** @param {string} [refusal] */
    const done = refusal => {
      socket.destroy()
      resolve(refusal)
    }
    socket.on('connect', () => done())
    socket.on('timeout', () => done('does not answer'))
    socket.on('error', () => done('does not answer'))
  })
  return answer
}

/**
 * A port that answers is not enough: a freshly installed Postgres knows no role of ours.
 * @param {string} address
 */
async function refusalOfPostgres(address) {
  const url = new URL(address)
  url.port ||= '5432'
  const silent = await refusalOfPort(url.href)
  if (silent !== undefined) return silent
  const { default: pg } = await import('pg') // not at the top: this file is read before the dependencies are installed
  const client = new pg.Client({ connectionString: address, connectionTimeoutMillis: PROBE_TIMEOUT_MS })
  try {
    await client.connect()
    const { rows } = await client.query(
      'SELECT rolcreatedb OR rolsuper AS allowed FROM pg_roles WHERE rolname = current_user',
    )
    return rows[0]?.allowed ? undefined : 'lets its role create no databases'
  } catch (error) {
    return `refuses us (${error instanceof Error ? error.message : error})`
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * A port that answers is not enough: it has to let us in.
 * @param {string} address
 */
async function refusalOfRabbitmq(address) {
  const url = new URL(address)
  url.port ||= url.protocol === 'amqps:' ? '5671' : '5672'
  const silent = await refusalOfPort(url.href)
  if (silent !== undefined) return silent
  const { connect: open } = await import('amqplib') // not at the top: this file is read before it is installed
  try {
    const connection = await open(address, { timeout: PROBE_TIMEOUT_MS * 5 })
    await connection.close()
    return undefined
  } catch (error) {
    return `refuses us (${error instanceof Error ? error.message : error})`
  }
}

/** An address without its password. @param {string} address */
function shown(address) {
  if (!URL.canParse(address)) return address
  const { protocol, username, host, pathname } = new URL(address)
  return `${protocol}//${username && `${username}@`}${host}${pathname}`
}
