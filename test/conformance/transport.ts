// The suite every transport must pass. A transport's test file is a few lines: it says how to open one, and, for what
// that transport cannot do by its nature, why. The stories are by theme in transport/.
import { afterAll, describe, expect, it } from 'vitest'
import { due } from './transport/due.js'
import { fence } from './transport/fence.js'
import type { TransportHarness } from './transport/harness.js'
import { line } from './transport/line.js'
import { payload } from './transport/payload.js'
import { settle } from './transport/settle.js'
import { type Stage, stageOn } from './transport/stage.js'
import { tx } from './transport/tx.js'
import { unique } from './transport/unique.js'
import { wake } from './transport/wake.js'

/** Declares one test; the stage is its own. */
export type Tell = (story: string, play: (stage: Stage) => Promise<void>) => void

const THEMES: Readonly<Record<string, (tell: Tell) => void>> = { line, due, unique, settle, fence, wake, tx, payload }

/** `skips`: what this transport cannot pass, by the story's name, each with the reason. */
export function transportConformance(
  name: string,
  open: () => Promise<TransportHarness>,
  skips: Readonly<Record<string, string>> = {},
): void {
  let opened: Promise<TransportHarness> | undefined
  // Opened by the first test and not by a hook: where its server is missing, each test is skipped with the reason.
  const harness = async () => {
    opened ??= open()
    return opened.catch(error => {
      opened = undefined
      throw error
    })
  }
  const told = new Set<string>()

  describe(`transport: ${name}`, () => {
    for (const [theme, stories] of Object.entries(THEMES)) {
      describe(theme, () => {
        stories((story, play) => {
          told.add(story)
          it(story, async test => {
            const reason = skips[story]
            if (reason !== undefined) test.skip(reason)
            await play(stageOn(await harness()))
          })
        })
      })
    }

    it('skips only what exists, and says why', () => {
      for (const [story, reason] of Object.entries(skips)) {
        expect(told, 'a skip of a story that is not told').toContain(story)
        expect(reason.length, `the reason to skip "${story}"`).toBeGreaterThan(20)
      }
    })

    afterAll(async () => {
      await (await opened)?.close()
    })
  })
}
