// Who cannot take part, and what cannot even be prepared, is told; everything else is measured all the same.
import { expect, test } from 'vitest'
import { Absent } from '../../bench/harness/arena.mjs'
import { ask } from '../../bench/harness/rounds.mjs'
import { atLeast } from '../../bench/harness/verdict.mjs'

type Question = Parameters<typeof ask>[0]
type Servers = Parameters<typeof ask>[1]

const question = (prepare: Question['prepare']): Question => ({
  name: 'any',
  title: 'Any',
  rounds: { full: 3, quick: 1 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  ...(prepare && { prepare }),
  entrants: () => [
    { key: 'here', label: 'here', measure: async () => ({ perSecond: 4 }) },
    { key: 'absent', label: 'absent', measure: () => Promise.reject(new Absent('no Redis')) },
    { key: 'broken', label: 'broken', measure: () => Promise.reject(new Error('only 3 of 4 handlers had run')) },
  ],
  verdicts: medians => [atLeast('≥ 2', medians('here', 'perSecond'), { label: 'peer', value: 2 }, 2)],
})

const asked = (prepare?: Question['prepare']) =>
  ask(question(prepare), {} as Servers, { quick: false, log: () => {}, stopped: () => false })

test('one who is absent or fails does not keep the others from being measured', async () => {
  const { rows, verdicts } = await asked()
  expect(rows.map(({ key, absent, failed, figures }) => [key, absent ?? failed ?? figures.perSecond?.samples])).toEqual(
    [
      ['here', [4, 4, 4]],
      ['absent', 'no Redis'],
      ['broken', 'only 3 of 4 handlers had run'],
    ],
  )
  expect(verdicts).toMatchObject([{ ratio: 2, passed: true }])
})

test('a question that cannot be prepared is answered by why, and neither passes nor fails', async () => {
  const missing = await asked(() => Promise.reject(new Absent('no FFmpeg')))
  expect(missing.rows).toEqual([{ key: 'everyone', label: 'everyone', figures: {}, absent: 'no FFmpeg' }])
  expect(missing.verdicts[0]?.passed).toBeUndefined()
  const broken = await asked(() => Promise.reject(new Error('the disk is full')))
  expect(broken.rows).toMatchObject([{ failed: 'the disk is full' }])
})
