// Who takes part in a question, and who of them is a peer on Postgres.
import { inArena } from './arena.mjs'

/**
 * @typedef {Record<string, number>} Figures
 * @typedef {import('./arena.mjs').Servers} Servers
 * @typedef {object} Entrant
 * @property {string} key
 * @property {string} label
 * @property {(servers: Servers) => Promise<Figures>} measure one round
 */

/**
 * `options` are the contestant's own; `share`: it gets this share of the jobs, because it is slow and a rate needs no more.
 * @typedef {{ key: string, contestant: string, label: string, options?: Record<string, unknown>, share?: number }} Setup
 */

/** @type {Setup} */
export const REDRIVE = { key: 'redrive', contestant: 'redrive', label: 'redrive' }
/** @type {Setup} */
export const GRAPHILE = { key: 'graphile-worker', contestant: 'graphile-worker', label: 'graphile-worker' }
/** @type {Setup} */
export const PG_BOSS = { key: 'pg-boss', contestant: 'pg-boss', label: 'pg-boss (fetch)' }
/** @type {Setup} */
export const PG_BOSS_WORK = {
  key: 'pg-boss-work',
  contestant: 'pg-boss',
  label: 'pg-boss (work)',
  options: { mode: 'work' },
}
/** @type {Setup} */
export const BULLMQ_REDIS = { key: 'bullmq-redis', contestant: 'bullmq-redis', label: 'BullMQ on Redis' }
/** @type {Setup} */
export const BULLMQ_POSTGRES = {
  key: 'bullmq-postgres',
  contestant: 'bullmq-postgres',
  label: 'BullMQ on Postgres',
  share: 0.1,
}

/** What the machine has to give: not a product, and nobody's peer. @type {Setup} */
export const BARE = { key: 'bare', contestant: 'bare', label: 'bare statements' }

/** Those whose figures count as "the best Postgres peer". */
export const POSTGRES_PEERS = [GRAPHILE, PG_BOSS, PG_BOSS_WORK, BULLMQ_POSTGRES]
export const PEERS = [...POSTGRES_PEERS, BULLMQ_REDIS]
export const EVERYONE = [REDRIVE, BARE, ...PEERS]

/** With 100,000 jobs, those who are quick enough for it. @param {Setup} setup @returns {Setup} */
const long = setup => ({ ...setup, key: `${setup.key}-long`, label: `${setup.label}, 100,000 jobs` })
export const LONG_PEERS = [GRAPHILE, PG_BOSS].map(long)
export const LONG = [...[REDRIVE, BARE].map(long), ...LONG_PEERS]

/**
 * @param {readonly Setup[]} setups
 * @param {(arena: import('./arena.mjs').Arena, setup: Setup) => Promise<Figures>} measure
 * @returns {Entrant[]}
 */
export const entrants = (setups, measure) =>
  setups.map(setup => ({
    key: setup.key,
    label: setup.label,
    measure: servers => inArena(servers, setup.contestant, arena => measure(arena, setup)),
  }))

/** How many jobs a setup gets. @param {Setup} setup @param {number} count */
export const jobsFor = (setup, count) => Math.round(count * (setup.share ?? 1))
