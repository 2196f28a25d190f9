// Providers from modules of others: each exports by default a function that registers what it has.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Log, RedriveError } from 'redrive'
import { type Ending, endAll } from './endings.js'
import type { ProviderRegistry } from './registry.js'

export interface ProviderModuleContext {
  readonly log: Log
}

/** The default export of a provider module. What it returns is called when the work has ended. */
export type ProviderModule = (
  registry: ProviderRegistry,
  context: ProviderModuleContext,
) => void | (() => void | Promise<void>) | Promise<void | (() => void | Promise<void>)>

/** Returns what ends them all, last one first. */
export async function loadProviders(
  paths: readonly string[],
  registry: ProviderRegistry,
  context: ProviderModuleContext,
): Promise<() => Promise<void>> {
  const endings: Ending[] = []
  try {
    for (const path of paths) {
      const end = await (await moduleAt(path))(registry, context)
      if (typeof end === 'function') endings.push(end)
    }
  } catch (error) {
    await endAll(endings).catch(() => {}) // why one cannot be loaded is what is to be said
    throw error
  }
  return () => endAll(endings)
}

async function moduleAt(path: string): Promise<ProviderModule> {
  let module: { readonly default?: unknown }
  try {
    module = (await import(pathToFileURL(resolve(path)).href)) as typeof module
  } catch (cause) {
    throw new RedriveError('SETTING_INVALID', `The provider module ${path} cannot be loaded: ${messageOf(cause)}`, {
      cause,
    })
  }
  if (typeof module.default === 'function') return module.default as ProviderModule
  throw new RedriveError('SETTING_INVALID', `The provider module ${path} has no function as its default export`)
}

const messageOf = (error: unknown): string => (error as Error)?.message || String(error)
