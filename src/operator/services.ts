// What a person may do about services: see how they are, hold one, let it go, and change what its breaker and its retry
// budget go by. Workers follow within a second.

import type { BreakerState, ServiceCounts, ServiceSettings } from '../domain/breaker.js'
import { RedriveError } from '../domain/errors.js'
import type { Announce } from '../domain/event.js'
import type { Json } from '../domain/json.js'
import { checkName } from '../domain/names.js'
import { writeAudit } from '../ledger/audit.js'
import { type BreakerRow, breakers, moveBreaker, setServiceSettings } from '../ledger/breaker.js'
import { jobTypes } from '../ledger/job-type.js'
import { seenOf } from '../ledger/service-window.js'
import { wakeChannel } from '../ledger/wake-channel.js'
import { type EffectiveService, effectiveService, parseService } from '../policy/service-settings.js'
import { type Acting, actorOf, type Desk } from './context.js'

export interface ServicesDesk extends Desk {
  readonly announce: Announce
  /** Tells this process's own workers that something was changed. */
  readonly changed: () => void
  /** What the code says of services. */
  readonly ofCode: Readonly<Record<string, ServiceSettings>>
}

export interface ServiceView {
  readonly service: string
  readonly state: BreakerState
  readonly since: Date | null
  readonly reason: string
  readonly changedBy: string
  readonly shadow: boolean
  /** When an open breaker lets the first jobs try. */
  readonly openUntil: Date | null
  readonly openings: number
  readonly version: number
  /** What the fleet saw over the last window. */
  readonly counts: ServiceCounts
  /** All that holds, as far as this process knows the code's settings. */
  readonly settings: EffectiveService
  /** What a person set; null: nothing. */
  readonly override: ServiceSettings | null
  readonly overrideVersion: number
}

const NEVER = { state: 'closed', openUntil: null, openings: 0, version: 0, changedBy: '', shadow: false } as const
const TRIES = 5

export function services(desk: ServicesDesk) {
  const { db, announce, changed, ofCode } = desk

  const view = async (names: readonly string[]): Promise<ServiceView[]> => {
    const { breakers: rows } = await breakers(db, names)
    const known = names.map(service => {
      const row = rows.find(found => found.service === service)
      const override = stored(row)
      return { service, row, override, settings: effectiveService(ofCode[service], override ?? undefined) }
    })
    const asked = known.map(({ service, settings: { breaker, budget } }) => {
      return { service, healthMs: breaker.windowMs, attemptsMs: budget.windowMs, since: 0 }
    })
    const seen = await seenOf(db, asked)
    return known.map(({ service, row, override, settings }) => ({
      ...standing(service, row),
      counts: summed(seen.filter(sight => sight.service === service)),
      settings,
      override,
      overrideVersion: row?.settingsVersion ?? 0,
    }))
  }

  /** Moves a breaker whatever moves it meanwhile; undefined: it is so already. */
  const move = async (service: string, to: 'isolated' | 'closed', acting: Acting): Promise<void> => {
    const reason = acting.reason ?? (to === 'isolated' ? 'isolated by a person' : 'released by a person')
    for (let tries = 0; tries < TRIES; tries += 1) {
      const [row] = (await breakers(db, [service])).breakers
      const from = row?.state ?? 'closed'
      if (from === to) return
      const moved = await db.transaction(async tx => {
        const change = { service, fromVersion: row?.version ?? 0, state: to, shadow: false, reason }
        // Whatever was held comes back slowly.
        const openings = to === 'isolated' ? (row?.openings ?? 0) : Math.max(1, row?.openings ?? 0)
        if (!(await moveBreaker(tx, { ...change, openings, changedBy: actorOf(acting) }, wakeChannel(db)))) return false
        const action = to === 'isolated' ? 'isolate' : 'release'
        await writeAudit(tx, { ...entry(action, service, acting), before: { state: from }, after: { state: to } })
        return true
      })
      if (!moved) continue
      announce('breaker.changed', () => ({ service, from, to, reason, openMs: undefined, shadow: false }))
      return changed()
    }
    throw new RedriveError('VERSION_CONFLICT', `The breaker of ${service} kept moving while it was to be changed`)
  }

  return {
    /** Every service that a job names or that has a breaker, with its state and what was seen of it. */
    async list(): Promise<ServiceView[]> {
      const named = (await jobTypes(db)).flatMap(({ service }) => service ?? [])
      const kept = (await breakers(db)).breakers.map(({ service }) => service)
      const all = new Set([...named, ...kept, ...Object.keys(ofCode)])
      return view([...all].sort())
    },

    async get(service: string): Promise<ServiceView> {
      checkName('service', service)
      const [found] = await view([service])
      return found as ServiceView
    },

    /** Holds every job of the service until it is released. Running ones finish. */
    async isolate(service: string, acting: Acting = {}): Promise<ServiceView> {
      checkName('service', service)
      await move(service, 'isolated', acting)
      return this.get(service)
    },

    /** Closes the breaker, whatever it was: its jobs run again, slowly at first. */
    async release(service: string, acting: Acting = {}): Promise<ServiceView> {
      checkName('service', service)
      await move(service, 'closed', acting)
      return this.get(service)
    },

    /** Overrides, at run time, what the code says of this service; null takes the override away. Returns its version. */
    async configure(service: string, settings: ServiceSettings | null, acting: Acting = {}): Promise<number> {
      checkName('service', service)
      const stored = settings === null ? null : (parseService(settings, `settings of ${service}`) as Json)
      const version = await db.transaction(async tx => {
        const [was] = (await breakers(tx, [service])).breakers
        const set = await setServiceSettings(tx, service, stored, actorOf(acting), wakeChannel(db))
        await writeAudit(tx, { ...entry('configure', service, acting), before: was?.settings ?? null, after: stored })
        return set
      })
      changed()
      return version
    },
  }
}

export type Services = ReturnType<typeof services>

/** Settings that this version does not understand are those of another: what they are is not for us to say. */
function stored(row: BreakerRow | undefined): ServiceSettings | null {
  if (!row || row.settings === null) return null
  try {
    return parseService(row.settings, `settings of ${row.service}`)
  } catch {
    return null
  }
}

function standing(service: string, row: BreakerRow | undefined) {
  if (!row) return { service, since: null, reason: 'nothing has happened yet', ...NEVER }
  const { state, since, reason, changedBy, shadow, openUntil, openings, version } = row
  const at = openUntil === null ? null : new Date(openUntil)
  return { service, state, since: new Date(since), reason, changedBy, shadow, openUntil: at, openings, version }
}

function summed(seen: readonly ServiceCounts[]): ServiceCounts {
  const sum = (count: (sight: ServiceCounts) => number) => seen.reduce((total, sight) => total + count(sight), 0)
  return {
    firstAttempts: sum(({ firstAttempts }) => firstAttempts),
    retries: sum(({ retries }) => retries),
    succeeded: sum(({ succeeded }) => succeeded),
    failed: sum(({ failed }) => failed),
  }
}

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'service' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})
