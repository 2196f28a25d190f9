// A provider worker in this process, on a ledger of its own, with short waits and a way to await the end of a job.
import { afterAll } from 'vitest'
import { createProviderApp } from '../../../../apps/providers/provider-app.js'
import type { ProviderDesk } from '../../../../apps/providers/provider-desk.js'
import type { ProviderWorker } from '../../../../apps/providers/provider-worker.js'
import type { ProviderRequest } from '../../../../apps/providers/request.js'
import type { DeadLetter, Events, Redrive, RedriveOptions } from '../../../../src/index.js'
import { type LibraryKind, openLibrary } from '../../../support/library.js'

export const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

/** As short as can be: no test waits for a delay of seconds. */
export const QUICK = { RETRY_DELAY_SECONDS: '0', PROVIDER_RETRY_DELAYS: 'create=0,get=0,delete=0' }

export interface Scene {
  readonly worker: ProviderWorker
  readonly redrive: Redrive
  readonly desk: ProviderDesk
  readonly next: ReturnType<typeof follow>
  /** Submits it and awaits its end. */
  completed(request: ProviderRequest): Promise<unknown>
  died(request: ProviderRequest): Promise<DeadLetter>
}

const endings: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const end of endings) await end()
})

export async function openScene(
  env: Readonly<Record<string, string>> = {},
  { kind = 'memory', ...options }: RedriveOptions & { readonly kind?: LibraryKind } = {},
): Promise<Scene> {
  const app = createProviderApp({ ...QUICK, ...env })
  const { redrive } = await openLibrary(kind, options)
  endings.push(await app.setup({ redrive, env, log: silentLog }))
  const next = follow(redrive)
  const desk = app.desk(redrive)
  await redrive.work([app.providerOperation], { concurrency: app.settings.concurrency }).ready
  return {
    worker: app.worker,
    redrive,
    desk,
    next,
    async completed(request) {
      const { id } = await desk.submit(request)
      await next('job.completed', id)
      return (await redrive.operator.jobs.get(id))?.result
    },
    async died(request) {
      const { id } = await desk.submit(request)
      await next('job.dead', id)
      return redrive.operator.deadLetters.get(id)
    },
  }
}

type Followed = 'job.completed' | 'job.dead' | 'job.retrying'

/** Gives the last event of a job that has happened since, or the first that will. */
export function follow(redrive: Redrive) {
  const seen = new Map<string, unknown>()
  const waiting = new Map<string, (event: unknown) => void>()
  for (const name of ['job.completed', 'job.dead', 'job.retrying'] as const) {
    redrive.on(name, event => {
      const key = `${name} ${event.job.id}`
      seen.set(key, event)
      waiting.get(key)?.(event)
    })
  }
  return async <Name extends Followed>(name: Name, id: string): Promise<Events[Name]> => {
    const key = `${name} ${id}`
    const event = seen.get(key) ?? (await new Promise(resolve => waiting.set(key, resolve)))
    return event as Events[Name]
  }
}
