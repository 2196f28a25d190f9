// A provider that works, once it is there: it takes its time to start. Until then its jobs wait and are tried again.
import { PermanentError } from 'redrive'
import { z } from 'zod'
import { operation, type Provider } from '../provider.js'

const named = z.strictObject({ name: z.string().min(1).max(90) })
const described = named.extend({ location: z.enum(['westeurope', 'northeurope']) })

export function resourceGroups(): Provider {
  const groups = new Map<string, { name: string; location: string }>()
  const existing = (name: string) => {
    const group = groups.get(name)
    if (!group) throw new PermanentError(`Resource group ${name} does not exist`)
    return group
  }
  return {
    // Asked twice, it does the same as once: an attempt whose end was lost is run again.
    create: operation({
      schema: described,
      run: async group => {
        groups.set(group.name, group)
        return group
      },
    }),
    get: operation({ schema: named, run: async ({ name }) => existing(name) }),
    update: operation({ schema: described, run: async group => groups.set(existing(group.name).name, group).size }),
    delete: operation({
      schema: named,
      run: async ({ name }) => {
        if (!groups.delete(name)) throw new PermanentError(`Resource group ${name} is already gone`)
      },
    }),
    list: async () => [...groups.values()].slice(0, 100),
  }
}
