// Loads a module of the user's own by its path: JavaScript as it is; TypeScript through `tsx` where the project has it, or by
// a Node that strips types itself.
import { access } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CliError, usageError } from './exit.js'

export interface LoadedModule {
  /** As it was named on the command line. */
  readonly path: string
  readonly url: string
  readonly exports: Readonly<Record<string, unknown>>
}

const TYPESCRIPT = new Set(['.ts', '.mts', '.cts', '.tsx'])

/** Each path once, in their order, one after the other: what one of them throws is said of that one. */
export async function loadModules(paths: readonly string[], folder: string): Promise<LoadedModule[]> {
  const urls = new Map(paths.map(path => [pathToFileURL(resolve(folder, path)).href, path]))
  for (const path of urls.values()) {
    const there = await access(resolve(folder, path)).then(
      () => true,
      () => false,
    )
    if (!there) throw usageError(`There is no module ${path}`, 'name files, such as ./jobs.ts')
  }
  const typescript = [...urls.values()].find(path => TYPESCRIPT.has(extname(path)))
  if (typescript !== undefined) await prepareTypescript(typescript, folder)
  const loaded: LoadedModule[] = []
  for (const [url, path] of urls) loaded.push({ path, url, exports: await load(url, path) })
  return loaded
}

async function load(url: string, path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(url)) as Record<string, unknown>
  } catch (cause) {
    throw new CliError(`The module ${path} cannot be loaded: ${messageOf(cause)}`, { cause })
  }
}

let isPrepared = false

async function prepareTypescript(path: string, folder: string): Promise<void> {
  if (isPrepared) return
  const tsx = findTsx(folder)
  // A Node that strips types still takes imports as they are written, and `./other.js` is `./other.ts` here: tsx first.
  if (tsx === undefined && (process.features as { typescript?: unknown }).typescript) return
  if (tsx === undefined) {
    throw new CliError(`The module ${path} is TypeScript, which Node ${process.versions.node} cannot load by itself`, {
      next: 'npm install tsx, use Node 22.18 or newer, or compile it',
    })
  }
  const { register } = (await import(pathToFileURL(tsx).href)) as { register(): unknown }
  register()
  isPrepared = true
}

/** Of the project whose modules are loaded, or our own. */
function findTsx(folder: string): string | undefined {
  for (const from of [pathToFileURL(join(folder, 'package.json')).href, import.meta.url]) {
    try {
      // What `require` finds is its CommonJS twin, which cannot be imported.
      return createRequire(from)
        .resolve('tsx/esm/api')
        .replace(/\.cjs$/, '.mjs')
    } catch {}
  }
  return undefined
}

export const messageOf = (error: unknown): string => (error as Error)?.message || String(error)
