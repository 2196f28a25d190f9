// Random lives: whatever happens to jobs, in whatever order, the ledger says what a simple model says. A failure
// prints the seed and the shortest story that fails; REDRIVE_TEST_RUNS=1000 tells more of them.
import fc from 'fast-check'
import { it } from 'vitest'
import { type DatabaseKind, serverUrl } from '../support/databases.js'
import { agreeInView } from './agreement.js'
import { COMMANDS } from './commands.js'
import { Model } from './model.js'
import { openWorld, startedAt } from './world.js'

/** As many are drawn; those that cannot happen when their turn comes, about half, are left out. */
const COMMANDS_A_RUN = 300
const TIMEOUT_MS = 30 * 60_000

const runs = (byDefault: number) => Number(process.env.REDRIVE_TEST_RUNS ?? byDefault)

async function tellLives(kind: DatabaseKind, numRuns: number): Promise<void> {
  const lives = fc.commands(COMMANDS, { maxCommands: COMMANDS_A_RUN, size: 'max' })
  const story = fc.asyncProperty(lives, fc.integer(), async (commands, seed) => {
    const world = await openWorld(kind, seed)
    try {
      const model = new Model(startedAt)
      const seen = new Map()
      await fc.asyncModelRun(() => ({ model, real: { world, seen } }), commands)
      await agreeInView(model, world)
    } finally {
      await world.transport.close()
      await world.close()
    }
  })
  await fc.assert(story, { numRuns, endOnFailure: false })
}

it('embedded: the ledger agrees with the model', () => tellLives('memory', runs(40)), TIMEOUT_MS)

it(
  'server: the ledger agrees with the model',
  async () => {
    await serverUrl()
    await tellLives('server-schema', runs(12))
  },
  TIMEOUT_MS,
)
