// `redrive/testing`: what users' own tests need: time by hand, chance by a seed, faults on demand, a ledger in memory.

export { type FaultPlan, faults } from './faults.js'
export { type ManualClock, manualClock } from './manual-clock.js'
export { seededRandom } from './seeded-random.js'
export { openTestRedrive, type TestRedrive } from './test-redrive.js'
