// The provider worker put together from the environment: the job, its desk, and what has to be there while it runs.
import type { Log, Redrive, Rule } from 'redrive'
import { ProviderDesk } from './provider-desk.js'
import { loadProviders } from './provider-modules.js'
import { ProviderWorker } from './provider-worker.js'
import { type Environment, readSettings, type Settings } from './settings.js'
import { DEFAULT_RULES, ensureRules } from './triage-rules.js'

/** What `redrive work` and `redrive serve` give to a module's `setup`. */
export interface SetupContext {
  readonly redrive: Redrive
  readonly env: Environment
  readonly log: Log
}

export interface ProviderApp {
  readonly settings: Settings
  readonly worker: ProviderWorker
  readonly providerOperation: ProviderWorker['job']
  /** Before the work begins; what it returns is called when it has ended. */
  setup(context: SetupContext): Promise<() => Promise<void>>
  desk(redrive: Redrive): ProviderDesk
}

export interface ProviderAppOptions {
  /** What kind of failure an error is, before Redrive judges. */
  readonly rules?: readonly Rule[]
  /** A class of your own, with a `classify` of your own. */
  readonly Worker?: typeof ProviderWorker
}

export function createProviderApp(env: Environment, options: ProviderAppOptions = {}): ProviderApp {
  const { rules = [], Worker = ProviderWorker } = options
  const settings = readSettings(env)
  const { retryDelays, attemptsByOperation, timeoutMs, rabbitmq } = settings
  const worker = new Worker({
    retryDelays,
    attemptsByOperation,
    timeoutMs,
    rules,
    ...(rabbitmq && { transport: 'rabbitmq' }),
  })
  return {
    settings,
    worker,
    providerOperation: worker.job,
    async setup({ redrive, log }) {
      if (settings.triage) await ensureRules(redrive, DEFAULT_RULES)
      const endProviders = await loadProviders(settings.modules, worker.registry, { log })
      log.info('provider operations are run', {
        providers: worker.registry.list().map(({ name }) => name),
        carrier: rabbitmq ? 'rabbitmq' : 'ledger',
      })
      return endProviders
    },
    desk: redrive => new ProviderDesk(redrive, worker),
  }
}
