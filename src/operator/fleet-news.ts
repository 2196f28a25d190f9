// What happens in the fleet, for whoever watches.
import type { FleetNews } from '../domain/fleet-event.js'
import { fleetNews } from '../ledger/fleet-news.js'
import type { Desk } from './context.js'

/** `since`: the `now` of the look before. */
export type FleetWatch = (since?: number) => Promise<FleetNews>

export const fleetWatch =
  ({ db }: Desk): FleetWatch =>
  since =>
    fleetNews(db, since)
