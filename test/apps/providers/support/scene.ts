// A provider worker in this process, on an embedded ledger, with short waits and a way to await the end of a job.
import { afterAll } from 'vitest'
import { createProviderApp, type ProviderApp } from '../../../../apps/providers/provider-app.js'
import type { ProviderDesk } from '../../../../apps/providers/provider-desk.js'
import type { ProviderWorker } from '../../../../apps/providers/provider-worker.js'
import type { ProviderRequest } from '../../../../apps/providers/request.js'
import type { DeadLetter, Events, Redrive, RedriveOptions } from '../../../../src/index.js'
import { openLibrary } from '../../../support/library.js'

export const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

/** As short as can be: no test waits for a delay of seconds. */
export const QUICK = { RETRY_DELAY_SECONDS: '0', PROVIDER_RETRY_DELAYS: 'create=0,get=0,delete=0' }

export interface Scene {
  readonly app: ProviderApp
  readonly worker: ProviderWorker
  readonly redrive: Redrive
  readonly desk: ProviderDesk
  /** The next event of this job. */
  next<Name extends 'job.completed' | 'job.dead' | 'job.retrying'>(name: Name, id: string): Promise<Events[Name]>
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
  { Worker, ...options }: RedriveOptions & { Worker?: typeof ProviderWorker } = {},
): Promise<Scene> {
  const app = createProviderApp({ ...QUICK, ...env }, Worker)
  const { redrive } = await openLibrary('memory', options)
  endings.push(await app.setup({ redrive, env, log: silentLog }))
  return sceneOf(app, redrive)
}

export async function sceneOf(app: ProviderApp, redrive: Redrive): Promise<Scene> {
  const seen = { 'job.completed': new Map(), 'job.dead': new Map(), 'job.retrying': new Map() }
  const waiting = new Map<string, (event: unknown) => void>()
  for (const name of Object.keys(seen) as (keyof typeof seen)[]) {
    redrive.on(name, event => {
      seen[name].set(event.job.id, event)
      waiting.get(`${name} ${event.job.id}`)?.(event)
    })
  }
  const desk = app.desk(redrive)
  const work = redrive.work([app.providerOperation], { concurrency: app.settings.concurrency })
  await work.ready
  const scene: Scene = {
    app,
    worker: app.worker,
    redrive,
    desk,
    next: (name, id) =>
      seen[name].get(id) ?? new Promise(resolve => waiting.set(`${name} ${id}`, event => resolve(event as never))),
    async completed(request) {
      const { id } = await desk.submit(request)
      await scene.next('job.completed', id)
      return (await redrive.operator.jobs.get(id))?.result
    },
    async died(request) {
      const { id } = await desk.submit(request)
      await scene.next('job.dead', id)
      return redrive.operator.deadLetters.get(id)
    },
  }
  return scene
}
