// The last things that happened, in words, for the summary: fed by Redrive's events and by what it logs.
import type { Events, Logger, Redrive } from '../index.js'

const KEPT = 6

export interface News {
  readonly latest: readonly string[]
  add(text: string): void
  /** What this process did since it started. */
  readonly counts: { readonly completed: number; readonly retried: number; readonly died: number }
}

export function collectNews(): News & { follow(redrive: Redrive): void; readonly logger: Logger } {
  const latest: string[] = []
  const counts = { completed: 0, retried: 0, died: 0 }
  const add = (text: string) => {
    if (latest.at(-1) === text) return
    latest.push(text)
    if (latest.length > KEPT) latest.shift()
  }
  const warn = (fields: Record<string, unknown>, message: string) =>
    add([fields.where, fields.error, message].filter(part => part !== undefined).join(': '))

  return {
    latest,
    counts,
    add,
    logger: { debug() {}, info() {}, warn, error: warn },
    follow(redrive) {
      redrive.on('job.completed', event => {
        counts.completed += 1
        if (event.attempt > 1) add(`${named(event)} healed on attempt ${event.attempt}`)
      })
      redrive.on('job.retrying', event => {
        counts.retried += 1
        add(`${named(event)} failed: ${event.reason}`)
      })
      redrive.on('job.dead', event => {
        counts.died += 1
        add(`${named(event)} died: ${event.reason}`)
      })
      redrive.on('job.rescued', event => add(`${named(event)} rescued: ${event.decision.reason}`))
      redrive.on('worker.lapsed', ({ reason }) => add(`the worker lost its lease: ${reason}`))
      redrive.on('recovery.finished', ({ rescued, promoted, buried, error }) => {
        if (error !== undefined) add(`a recovery run failed: ${error}`)
        else if (rescued + promoted + buried > 0)
          add(`a recovery run: rescued ${rescued}, promoted ${promoted}, buried ${buried}`)
      })
    },
  }
}

/** The time part of an id changes slowly: its end tells two jobs apart. */
const named = ({ job }: Pick<Events['job.enqueued'], 'job'>): string => `${job.name} …${job.id.slice(-6)}`
