// A job that was taken for a worker comes to it once, in whichever ways it is heard of and found.
import { expect, it } from 'vitest'
import type { Lease, SessionId } from '../../src/domain/ids.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import { Claims } from '../../src/runtime/claims.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { ConsumeOptions, Consumer, Transport } from '../../src/transport/transport.js'
import { claimed } from '../support/fake-worker.js'
import { gate } from '../support/gate.js'

const SESSION = '1' as SessionId
const job = (lease: string): ClaimedJob => claimed({ lease: lease as Lease })

function someClaims() {
  const clock = manualClock()
  const came: string[] = []
  const here = new Set<string>()
  const ledger = {
    hold: [] as ClaimedJob[],
    /** Answers wait for this. */
    answers: Promise.resolve(),
    fetch: async (): Promise<ClaimedJob[]> => [],
  }
  let options: ConsumeOptions | undefined
  const held = async () => {
    const found = [...ledger.hold]
    await ledger.answers
    return found
  }
  const consumer: Consumer = {
    fetch: () => ledger.fetch(),
    held,
    standBy: async () => true,
    stand: async () => ({ stands: true, held: await held() }),
    close: async () => {},
  }
  const consume = (asked: ConsumeOptions): Consumer => {
    options = asked
    return { ...consumer }
  }
  const claims = new Claims({
    worker: 'w1',
    lanes: [],
    transport: { consume } as unknown as Transport,
    clock,
    announce: () => {},
    onWake() {},
    onUp() {},
    onHanded: ({ lease }) => void came.push(`handed ${lease}`),
    onFound: jobs => void came.push(...jobs.map(({ lease }) => `found ${lease}`)),
    whatIsHere() {
      const then = new Set(here)
      return ({ lease }) => then.has(lease)
    },
  })
  claims.open(SESSION)
  const fail = async () => {
    ledger.fetch = () => Promise.reject(new Error('no answer came'))
    await expect(claims.fetch([], 1)).rejects.toThrow('no answer came')
  }
  return { claims, came, here, ledger, fail, hear: (lease: string) => options?.onHanded?.(job(lease)) }
}

it('what is found by two looks at once comes once', async () => {
  const { claims, came, ledger, fail } = someClaims()
  await fail()
  ledger.hold = [job('1')]
  await Promise.all([claims.findMissed(), claims.stand(1_000)])
  expect(came).toEqual(['found 1'])
  expect(await claims.stand(1_000)).toEqual({ stands: true, found: 0 })
})

it('what is heard of while it is looked for comes once', async () => {
  const { claims, came, ledger, hear } = someClaims()
  const answer = gate()
  ledger.hold = [job('1'), job('2')]
  ledger.answers = answer.passed
  const looks = [claims.stand(1_000), claims.stand(1_000)]
  hear('1')
  answer.open()
  await Promise.all(looks)
  expect(came).toEqual(['handed 1', 'found 2'])
})

it('what is heard of after it was found does not come again, and neither does it to a look that began before', async () => {
  const { claims, came, ledger, hear } = someClaims()
  const answer = gate()
  ledger.hold = [job('1')]
  ledger.answers = answer.passed
  const slow = claims.stand(1_000)
  ledger.answers = Promise.resolve()
  await claims.stand(1_000)
  hear('1')
  answer.open()
  await slow
  expect(came).toEqual(['found 1'])
})

it('what a slow claim takes and a look finds comes once, whichever is quicker', async () => {
  const { claims, came, ledger } = someClaims()
  const answer = gate()
  ledger.fetch = async () => {
    await answer.passed
    return [job('1'), job('2')]
  }
  const claim = claims.fetch([], 2)
  ledger.hold = [job('1'), job('2')]
  await claims.stand(1_000)
  answer.open()
  expect(await claim).toEqual([])
  expect(came).toEqual(['found 1', 'found 2'])

  const look = gate()
  ledger.hold = [job('3')]
  ledger.answers = look.passed
  const looking = claims.stand(1_000)
  ledger.fetch = async () => [job('3')]
  expect(await claims.fetch([], 1)).toEqual([job('3')])
  look.open()
  expect(await looking).toMatchObject({ found: 0 })
})

it('what is here is not found', async () => {
  const { claims, came, here, ledger } = someClaims()
  here.add('1')
  ledger.hold = [job('1')]
  await claims.stand(1_000)
  expect(came).toEqual([])
})

it('what was looked for under a session that has lapsed since is found under the next, if it is there', async () => {
  const { claims, came, ledger } = someClaims()
  const answer = gate()
  ledger.hold = [job('1')]
  ledger.answers = answer.passed
  const look = claims.stand(1_000)
  await claims.close()
  answer.open()
  expect(await look).toMatchObject({ found: 0 })
  expect(await claims.stand(1_000)).toEqual({ stands: false, found: 0 })
  expect(await claims.standBy([])).toBe(false)
  claims.open(SESSION)
  expect(await claims.stand(1_000)).toMatchObject({ found: 1 })
  expect(came).toEqual(['found 1'])
})
