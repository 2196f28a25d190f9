import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'
import { defineConfig, type Plugin } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

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

// The longest go first: one that began last would run alone at the end, with the other workers idle.
const LONGEST = [
  'test/main/main.test.ts',
  'test/docs/examples.test.ts',
  'test/conformance/rabbitmq-classic.test.ts',
  'test/conformance/rabbitmq-quorum.test.ts',
  'test/conformance/redis.test.ts',
  'test/apps/thumbnails/processes.test.ts',
  'test/scenarios/outage.test.ts',
  'test/model/lifecycle.test.ts',
  'test/chaos/embedded-kill.test.ts',
  'test/chaos/rabbitmq.test.ts',
  'test/chaos/kill.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.findIndex(path => moduleId.endsWith(path))
      return index < 0 ? LONGEST.length : index
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  plugins: [decorators],
  resolve: { alias },
  test: {
    environment: 'node',
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    retry: 0,
    allowOnly: !process.env.CI,
    // The embedded database is compiled quickly instead of well: no test uses it for long enough to gain by more.
    execArgv: ['--liftoff-only'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: ['test/chaos/**'],
          // Not for all: it would be made once more for each project.
          globalSetup: ['test/support/embedded-snapshot.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Kills processes, restarts servers and counts what happens in real seconds: alone, one file at a time, when all
        // others are done.
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
