// Whole numbers by chance, both ends among them: from a seeded source, the same ones in every run.
import type { Random } from '../../src/domain/clock.js'

export const betweenBy =
  (random: Random) =>
  (least: number, most: number): number =>
    least + Math.floor(random() * (most - least + 1))
