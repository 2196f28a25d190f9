// The Postgres server that everyone runs on: found, proved durable, and given a fresh database for every round.
import pg from 'pg'
import { provide, services } from '../../scripts/services.mjs'

const SHOWN = ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum', 'shared_buffers', 'max_connections']
const REQUIRED = ['fsync', 'synchronous_commit']
const OURS = 'REDRIVE_BENCH_POSTGRES'

/** REDRIVE_BENCH_POSTGRES, else the server that the tests would use. */
export async function findPostgres() {
  const service = services.find(({ name }) => name === 'Postgres')
  if (!service) throw new Error('scripts/services.mjs knows no Postgres')
  const provided = await provide(process.env[OURS] ? { ...service, variable: OURS } : service)
  if ('missing' in provided) throw new Error(`No Postgres: ${provided.missing}`)
  const admin = new pg.Client({ connectionString: provided.address })
  await admin.connect()
  if (provided.stop) await makeDurable(admin)
  const settings = await readSettings(admin)
  const off = REQUIRED.filter(name => settings[name] !== 'on')
  if (off.length > 0) throw new Error(`This Postgres is not durable: ${off.join(' and ')} must be on`)
  return new PostgresServer(provided.address, admin, settings, provided.stop)
}

/** A server started for tests does not wait for the disk; ours must. @param {pg.Client} admin */
async function makeDurable(admin) {
  await admin.query('ALTER SYSTEM SET fsync = on')
  await admin.query('SELECT pg_reload_conf()')
  for (let tries = 0; tries < 50 && (await readSettings(admin)).fsync !== 'on'; tries += 1) {
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

/** @param {pg.Client} admin @returns {Promise<Record<string, string>>} */
async function readSettings(admin) {
  const { rows } = await admin.query(
    `SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY ($1)`,
    [[...SHOWN, 'server_version']],
  )
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

let databases = 0

export class PostgresServer {
  #address
  #stop
  /** @type {Set<string>} */
  #made = new Set()

  /**
   * @param {string} address
   * @param {pg.Client} admin
   * @param {Record<string, string>} settings
   * @param {(() => Promise<void>) | undefined} stop
   */
  constructor(address, admin, settings, stop) {
    this.#address = address
    this.#stop = stop
    this.admin = admin
    this.settings = settings
  }

  get facts() {
    const shown = SHOWN.map(name => `${name} ${this.settings[name]}`)
    return `Postgres ${this.settings.server_version} (${shown.join(', ')})`
  }

  /** A new, empty database. @returns {Promise<string>} its address */
  async create() {
    databases += 1
    const name = `redrive_bench_${process.pid}_${databases}`
    this.#made.add(name)
    await this.admin.query(`CREATE DATABASE ${name} TEMPLATE template0`)
    // So that nobody pays for what an earlier round left to be written.
    await this.admin.query('CHECKPOINT').catch(() => {})
    const url = new URL(this.#address)
    url.pathname = name
    return url.href
  }

  /** @param {string} address */
  async drop(address) {
    const name = new URL(address).pathname.slice(1)
    if (!this.#made.delete(name)) return
    await this.admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }

  /** Removes what is left, and the server if we started it. */
  async close() {
    for (const name of this.#made) await this.admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    this.#made.clear()
    await this.admin.end()
    await this.#stop?.()
  }
}
