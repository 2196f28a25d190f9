// Providers from modules of others: what one has opened is ended with the work, and when a later one cannot be loaded.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { loadProviders } from '../../../apps/providers/provider-modules.js'
import { ProviderRegistry } from '../../../apps/providers/registry.js'
import { silentLog } from './support/scene.js'

/** Modules of these sources, and what they tell. */
async function modules(...sources: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-providers-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const paths = sources.map((_, index) => join(folder, `${index}.mjs`))
  await Promise.all(sources.map((source, index) => writeFile(paths[index] as string, source)))
  const told: string[] = []
  const log = { ...silentLog, info: (text: string) => void told.push(text) }
  return { told, load: () => loadProviders(paths, new ProviderRegistry(), { log }) }
}

const ending = (name: string) => `export default (_, { log }) => () => log.info('${name} has ended')`

it('are ended last one first, each once', async () => {
  const { told, load } = await modules(ending('a'), ending('b'))
  const end = await load()
  expect(told).toEqual([])
  await end()
  await end()
  expect(told).toEqual(['b has ended', 'a has ended'])
})

it.each([
  ['fails', `export default () => { throw new Error('no such region') }`, 'no such region'],
  [
    'cannot be loaded',
    `throw new Error('no such file')`,
    /The provider module .*2\.mjs cannot be loaded: no such file/,
  ],
  ['is none', 'export default 1', /has no function as its default export/],
])('are ended when a later one %s', async (_, source, message) => {
  const { told, load } = await modules(ending('a'), ending('b'), source)
  await expect(load()).rejects.toThrow(message)
  expect(told).toEqual(['b has ended', 'a has ended'])
})

it('an ending that fails does not hide why another cannot be loaded', async () => {
  const fails = `export default () => () => { throw new Error('cannot end') }`
  const { load } = await modules(fails, `export default () => { throw new Error('no such region') }`)
  await expect(load()).rejects.toThrow('no such region')
})
