// Job modules: what `redrive work` and `redrive serve` find in the modules they are given. Every exported job with a handler is
// worked; an exported `setup` runs before the work begins, and what it returns when the work has ended; exported `transports`
// carry the queues that name them.
import type { JobDefinition, Log, Redrive, RedriveOptions } from '../index.js'
import { CliError } from './exit.js'
import { type LoadedModule, loadModules, messageOf } from './module-loader.js'

/** What a module's `setup` is given. */
export interface SetupContext {
  readonly redrive: Redrive
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

export type Teardown = () => Promise<void> | void
export type Setup = (context: SetupContext) => Promise<Teardown | undefined> | Teardown | undefined

// biome-ignore lint/suspicious/noExplicitAny: jobs of different payloads have no other common type
export type AnyJob = JobDefinition<any, any, any>

export interface JobModule {
  readonly path: string
  readonly jobs: readonly AnyJob[]
  readonly setup: Setup | undefined
  readonly transports: Transports
}

type Transports = NonNullable<RedriveOptions['transports']>

export async function jobModules(paths: readonly string[], folder: string): Promise<JobModule[]> {
  const modules = (await loadModules(paths, folder)).map(jobModule)
  checkNames(modules)
  return modules
}

function jobModule({ path, exports }: LoadedModule): JobModule {
  const values = Object.values(exports).flatMap(value => (Array.isArray(value) ? value : [value]))
  // One that is exported under two names is still one.
  const jobs = [...new Set(values.filter(isJob))].filter(({ handler }) => handler !== undefined)
  const { setup, transports = {} } = exports
  if (setup !== undefined && typeof setup !== 'function') {
    throw new CliError(`The module ${path} exports a \`setup\` that is no function`)
  }
  if (typeof transports !== 'object' || transports === null) {
    throw new CliError(`The module ${path} exports \`transports\` that are not like those of \`openRedrive\``)
  }
  if (jobs.length === 0) {
    throw new CliError(`The module ${path} exports no job with a handler`, {
      next: 'export what `defineJob` returns, by a name, as the default, or in a list',
    })
  }
  return { path, jobs, setup: setup as Setup | undefined, transports: transports as Transports }
}

/** By its shape, not by who made it: the module may have a copy of the library of its own. */
function isJob(value: unknown): value is AnyJob {
  if (typeof value !== 'object' || value === null) return false
  const { name, queue, policy, rules, handler } = value as Partial<AnyJob>
  return (
    typeof name === 'string' &&
    typeof queue === 'string' &&
    typeof policy === 'object' &&
    Array.isArray(rules) &&
    (handler === undefined || typeof handler === 'function')
  )
}

function checkNames(modules: readonly JobModule[]): void {
  const places = new Map<string, { readonly job: AnyJob; readonly path: string }>()
  for (const { path, jobs } of modules) {
    for (const job of jobs) {
      const key = `${job.queue}\n${job.name}`
      const other = places.get(key)
      if (other && other.job !== job) {
        const where = other.path === path ? `twice in ${path}` : `in ${other.path} and in ${path}`
        throw new CliError(`The job ${job.name} of queue ${job.queue} is defined ${where}`)
      }
      places.set(key, { job, path })
    }
  }
}

/** What carries jobs, of all modules together; one of a name is enough. */
export function transportsOf(modules: readonly JobModule[]): Transports {
  const known = new Map<string, string>()
  for (const { path, transports } of modules) {
    for (const [name, transport] of Object.entries(transports)) {
      const other = known.get(name)
      if (transport && other !== undefined) {
        throw new CliError(`The transport ${name} is exported by ${other} and by ${path}`, { next: 'export it once' })
      }
      if (transport) known.set(name, path)
    }
  }
  return Object.assign({}, ...modules.map(({ transports }) => transports)) as Transports
}

/** Runs every `setup`, in the order of the modules; returns what undoes them, last one first. */
export async function setUp(modules: readonly JobModule[], context: SetupContext): Promise<Teardown> {
  const undo: Teardown[] = []
  const tearDown = async () => {
    for (const teardown of undo.splice(0).reverse()) {
      try {
        await teardown()
      } catch (error) {
        context.log.error('tearing down failed', { error: messageOf(error) })
      }
    }
  }
  for (const { path, setup } of modules) {
    try {
      const teardown = await setup?.(context)
      if (typeof teardown === 'function') undo.push(teardown)
    } catch (cause) {
      await tearDown()
      throw new CliError(`The setup of ${path} failed: ${messageOf(cause)}`, { cause })
    }
  }
  return tearDown
}
