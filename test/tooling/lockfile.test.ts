// The lockfiles work everywhere: `npm ci` refuses one that lacks a package built for another platform (npm leaves
// such packages out when it cannot see them), and one that names a registry's host installs only where that
// host can be reached.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

interface Locked {
  readonly resolved?: string
  readonly integrity?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

describe.each(['package-lock.json', 'bench/package-lock.json'])('%s', file => {
  const lockfile = JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'))
  const packages = Object.entries(lockfile.packages as Record<string, Locked>)

  test('the packages of every platform are locked', () => {
    const locked = new Set(packages.map(([path]) => path))
    const missing = packages.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        name => !locked.has(`${path}/node_modules/${name}`) && !locked.has(`node_modules/${name}`),
      ),
    )
    expect(missing).toEqual([])
  })

  test('no registry is named, and every package is known by its hash', () => {
    const dependencies = packages.filter(([path]) => path !== '')
    expect(dependencies.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
    expect(dependencies.filter(([, { integrity }]) => integrity === undefined)).toEqual([])
  })
})
