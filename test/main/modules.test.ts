// Job modules: what is found in them, and the one line that says what is wrong with one.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jobModules, setUp, transportsOf } from '../../src/cli/modules.js'
import { silent } from '../support/runtime.js'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-modules-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const write = async (name: string, source: string): Promise<string> => {
  await writeFile(join(folder, name), source)
  return name
}
const job = (name: string, more = '') =>
  `{ name: ${JSON.stringify(name)}, queue: 'q', policy: {}, rules: [], handler: () => {} ${more} }`

it('finds jobs by name, as the default and in lists, each once, and leaves out what has no handler', async () => {
  const path = await write(
    'many.mjs',
    `const one = ${job('one')}, two = ${job('two')}
     export { one, one as again, two as default }
     export const list = [one, ${job('three')}, 'text', null]
     export const without = { ...one, name: 'without', handler: undefined }
     export const other = 1, nothing = null, text = 'x', fn = () => {}`,
  )
  const [module] = await jobModules([path, `./${path}`, join(folder, path)], folder)
  expect(module?.jobs.map(({ name }) => name).sort()).toEqual(['one', 'three', 'two'])
})

describe('says of which module something is wrong', () => {
  it.each([
    ['empty.mjs', 'export const nothing = 1', /^The module empty\.mjs exports no job with a handler$/],
    ['bare.mjs', `export const job = { ...${job('x')}, handler: undefined }`, /^The module bare\.mjs exports no job/],
    ['throws.mjs', `throw new Error('no such bucket')`, /^The module throws\.mjs cannot be loaded: no such bucket$/],
    ['broken.mjs', 'export const = 1', /^The module broken\.mjs cannot be loaded: /],
    ['missing.mjs', `import './not-there.mjs'`, /^The module missing\.mjs cannot be loaded: .*not-there/],
    ['setup.mjs', `export const setup = 1, job = ${job('x')}`, /^The module setup\.mjs exports a `setup` that is no/],
    [
      'twice.mjs',
      `export const a = ${job('x')}, b = ${job('x')}`,
      /^The job x of queue q is defined twice in twice\.mjs$/,
    ],
  ])('%s', async (name, source, message) => {
    await write(name, source)
    await expect(jobModules([name], folder)).rejects.toThrow(message)
  })

  it('one that is not there, and one that another defines as well', async () => {
    await expect(jobModules(['nowhere.mjs'], folder)).rejects.toMatchObject({
      message: 'There is no module nowhere.mjs',
      exit: 2,
    })
    const [a, b] = [
      await write('a.mjs', `export default ${job('x')}`),
      await write('b.mjs', `export default ${job('x')}`),
    ]
    await expect(jobModules([a, b], folder)).rejects.toThrow('The job x of queue q is defined in a.mjs and in b.mjs')
  })
})

it('takes the transports that modules export, each from one of them', async () => {
  const carried = (name: string) => `export const transports = { redis: {} }, job = ${job(name)}`
  const modules = await jobModules([await write('carried.mjs', carried('c'))], folder)
  expect(transportsOf(modules)).toEqual({ redis: {} })
  const two = await jobModules(['carried.mjs', await write('other.mjs', carried('d'))], folder)
  expect(() => transportsOf(two)).toThrow('The transport redis is exported by carried.mjs and by other.mjs')
})

describe('setup', () => {
  const log = { ...silent, error: () => {} } as never
  const context = { redrive: {} as never, env: {}, log }
  const moduleOf = (path: string, setup: () => unknown) => ({
    path,
    jobs: [],
    setup: setup as never,
    transports: {},
  })

  it('runs in order, and is undone last one first, whatever one of them throws', async () => {
    const done: string[] = []
    const step =
      (name: string, fails = false) =>
      () => {
        done.push(name)
        return () => {
          done.push(`not ${name}`)
          if (fails) throw new Error('no')
        }
      }
    const undo = await setUp(
      [moduleOf('a', step('a')), moduleOf('b', step('b', true)), moduleOf('c', () => {})],
      context,
    )
    await undo()
    await undo()
    expect(done).toEqual(['a', 'b', 'not b', 'not a'])
  })

  it('that fails undoes those before it, and says which it was', async () => {
    const done: string[] = []
    const fine = moduleOf('fine', () => () => done.push('undone'))
    const fails = moduleOf('bad.ts', async () => {
      throw new Error('no bucket')
    })
    await expect(setUp([fine, fails], context)).rejects.toThrow('The setup of bad.ts failed: no bucket')
    expect(done).toEqual(['undone'])
  })
})
