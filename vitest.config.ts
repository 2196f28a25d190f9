import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'
import { defineConfig, type Plugin } from 'vitest/config'

// Vitest's own compiler passes standard decorators through and Node does not know them yet: esbuild lowers them,
// in the few files that have one. Without this, `@retryable(…)` is a syntax error in a test.
const decorators: Plugin = {
  name: 'redrive:decorators',
  enforce: 'pre',
  async transform(source, id) {
    const path = id.split('?')[0] ?? id
    if (!path.endsWith('.ts') || path.includes('/node_modules/') || !/^\s*@[a-zA-Z]/m.test(source)) return null
    const { code, map } = await transform(source, {
      loader: 'ts',
      target: 'node20',
      sourcefile: path,
      sourcemap: 'external',
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, useDefineForClassFields: true } },
    })
    return { code, map }
  },
}

// Apps import the package by its name, as users do; here that is the sources, not the last build.
const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))
const alias = [
  { find: /^redrive$/, replacement: source('index.ts') },
  { find: /^redrive\/(http|testing)$/, replacement: source('$1/index.ts') },
  { find: /^redrive\/metrics$/, replacement: source('telemetry/index.ts') },
  { find: /^redrive\/transports\/redis$/, replacement: source('redis.ts') },
  { find: /^redrive\/transports\/(\w+)$/, replacement: source('transport/transports/$1.ts') },
]

export default defineConfig({
  plugins: [decorators],
  resolve: { alias },
  test: {
    environment: 'node',
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    retry: 0,
    globalSetup: ['test/support/embedded-snapshot.ts'],
    allowOnly: !process.env.CI,
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: ['test/chaos/**'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Kills processes and restarts servers: alone, one file at a time, when all others are done.
        extends: true,
        test: {
          name: 'chaos',
          include: ['test/chaos/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
