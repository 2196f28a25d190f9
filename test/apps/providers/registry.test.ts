// Who provides what: names are checked, providers come and go, nothing is found that was not registered.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Provider } from '../../../apps/providers/provider.js'
import { ProviderRegistry } from '../../../apps/providers/registry.js'

const groups = { namespace: 'ITL.Core', resourceType: 'ResourceGroup' }
const provider: Provider = { create: () => 1, get: { schema: z.object({}), run: () => 2 } }

describe('a registry of providers', () => {
  it('finds an operation of a provider, until it is unregistered', () => {
    const registry = new ProviderRegistry()
    registry.register('ITL.Core/ResourceGroup', provider)
    expect(registry.find(groups, 'create').type).toBe('found')
    expect(registry.find(groups, 'explode')).toEqual({ type: 'no operation', known: ['create', 'get'] })
    expect(registry.unregister('ITL.Core/ResourceGroup')).toBe(true)
    expect(registry.find(groups, 'create')).toEqual({ type: 'no provider' })
    expect(registry.unregister('ITL.Core/ResourceGroup')).toBe(false)
  })

  it('lets one be replaced on purpose only, and unregisters exactly what was registered', () => {
    const registry = new ProviderRegistry()
    const leave = registry.register('ITL.Core/ResourceGroup', provider)
    expect(() => registry.register('ITL.Core/ResourceGroup', provider)).toThrow(/one that is not registered yet/)
    registry.register('ITL.Core/ResourceGroup', { list: () => [] }, { replace: true })
    expect(leave()).toBe(false)
    expect(registry.list()).toEqual([{ name: 'ITL.Core/ResourceGroup', operations: ['list'] }])
  })

  it.each([
    '',
    'ITL.Core',
    '/ResourceGroup',
    'ITL.Core/',
    'ITL.Core/A/B',
    'ITL..Core/A',
    'a b/C',
    `A/${'x'.repeat(101)}`,
    'Ä/B',
  ])('refuses the name %j', name => {
    expect(() => new ProviderRegistry().register(name, provider)).toThrow(/must be Namespace\/ResourceType/)
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', {}, /at least one/],
    ['no object', 7, /an object of operations/],
    ['a bad name', { 'drop table': () => 1 }, /The name of an operation is "drop table"/],
    ['no function', { create: { run: 1 } }, /Operation create of A\/B is object; it must be a function/],
    ['a bad schema', { create: { run: () => 1, schema: {} } }, /a Standard Schema validator/],
    ['a bad delay', { create: { run: () => 1, retryDelayMs: -1 } }, /retryDelayMs of Operation create of A\/B is "-1"/],
  ])('refuses a provider with %s', (_, given, message) => {
    expect(() => new ProviderRegistry().register('A/B', given as Provider)).toThrow(message)
  })

  it('finds nothing that every object has', () => {
    const registry = new ProviderRegistry()
    registry.register('A/B', provider)
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(registry.find({ namespace: 'A', resourceType: 'B' }, name).type).toBe('no operation')
    }
  })
})
