// Waits for something that gives no signal: looks again and again, and fails with what was awaited when it never
// comes. Where there is a signal, await that instead.
import { setTimeout } from 'node:timers/promises'

const LOOK_AGAIN_MS = 10
const GIVE_UP_MS = 15_000

export async function until<T>(
  what: string,
  look: () => Promise<T> | T,
  withinMs = GIVE_UP_MS,
): Promise<Exclude<T, false | undefined | null>> {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const found = await look()
    if (found !== false && found !== undefined && found !== null) return found as Exclude<T, false | undefined | null>
    if (performance.now() > giveUpAt) throw new Error(`Waited ${withinMs} ms in vain until ${what}`)
    await setTimeout(LOOK_AGAIN_MS)
  }
}
