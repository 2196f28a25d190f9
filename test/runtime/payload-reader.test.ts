// Large payloads are read as handlers get to them: in order, few at a time, until they have come or nobody wants them any more.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import { defineJob } from '../../src/index.js'
import { PayloadReader } from '../../src/runtime/payload-reader.js'
import type { Held } from '../../src/runtime/slots.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type Gate, gate } from '../support/gate.js'

interface Question {
  readonly ids: string[]
  /** Brings the payload of one of them. */
  readonly come: (id: string, chars?: number) => void
  readonly over: Gate<void>
}

const send = defineJob({ name: 'send' })
const limited = defineJob({ name: 'limited', rateLimit: { name: 'api', limit: 1, intervalMs: 1_000 } })

function story() {
  const clock = manualClock()
  const questions: Question[] = []
  const read: string[][] = []
  const failed: { ids: string[]; error: unknown }[] = []
  const reader = new PayloadReader({
    clock,
    random: () => 1,
    read: (jobs, onRead) => {
      const over = gate()
      const come = (id: string, chars = 10) => {
        const job = jobs.find(job => job.id === id) as { payloadText: string; apart: boolean }
        job.payloadText = 'x'.repeat(chars)
        job.apart = false
        onRead(job as ClaimedJob)
      }
      questions.push({ ids: jobs.map(({ id }) => String(id)), come, over })
      return over.passed
    },
    isInLine: ({ definition }) => definition === send,
    onRead: held => read.push(held.map(({ job }) => String(job.id))),
    onFailed: (held, error) => {
      failed.push({ ids: held.map(({ job }) => String(job.id)), error })
      for (const each of held) reader.left(each)
    },
  })
  const held = (count: number, definition = send, from = 1): Held[] =>
    Array.from({ length: count }, (_, nth) => {
      const job = { id: String(from + nth) as JobId, payloadText: '', apart: true } as ClaimedJob
      return { job, definition } as unknown as Held
    })
  const question = (nth: number) => questions[nth] as Question
  return { clock, reader, questions, question, read, failed, held }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, nth) => String(from + nth))

describe('large payloads', () => {
  it('are asked for in the order of the line, two questions at a time', async () => {
    const { clock, reader, questions, question, held } = story()
    reader.add(held(20))
    expect(
      questions.map(({ ids }) => ids),
      'it is not known how large they are',
    ).toEqual([numbers(1, 5), numbers(6, 10)])
    for (const id of question(0).ids) question(0).come(id)
    question(0).over.open()
    await clock.advance(0)
    expect(question(2).ids).toEqual(numbers(11, 20))
  })

  it('are told of as they come, what comes in one turn at once', async () => {
    const { clock, reader, question, read, held } = story()
    const [first, ...others] = held(3) as [Held, Held, Held]
    reader.add([first, ...others])
    expect(reader.isComing(first)).toBe(true)
    question(0).come('1')
    question(0).come('2')
    expect(reader.isComing(first)).toBe(false)
    expect(read, 'not from within what brought them').toEqual([])
    await clock.advance(0)
    question(0).come('3')
    await clock.advance(0)
    expect(read).toEqual([['1', '2'], ['3']])
  })

  it('wait while a million characters are ready to run', async () => {
    const { clock, reader, questions, question, held } = story()
    const all = held(30)
    reader.add(all)
    for (const nth of [0, 1]) {
      for (const id of question(nth).ids) question(nth).come(id, 150_000)
      question(nth).over.open()
    }
    await clock.advance(0)
    expect(questions, 'ten of them are enough').toHaveLength(2)
    for (const each of all.slice(0, 3)) reader.left(each)
    expect(questions, 'a million are').toHaveLength(2)
    reader.left(all[3] as Held)
    expect(question(2).ids, 'as many as are worth a question').toEqual(numbers(11, 24))
  })

  it('are asked for by what those of their own sort were like', async () => {
    const { clock, reader, questions, question, held } = story()
    const first = held(5)
    reader.add(first)
    for (const id of question(0).ids) question(0).come(id, 3_000_000)
    question(0).over.open()
    await clock.advance(0)
    for (const each of first) reader.left(each)
    reader.add(held(3, send, 6))
    reader.add(held(9, limited, 9))
    expect(questions.map(({ ids }) => ids).slice(1), 'each is worth a question').toEqual([['6'], ['7']])
    question(1).come('6', 10)
    question(1).over.open()
    await clock.advance(0)
    expect(question(3).ids, 'one that was small changes little').toEqual(['8'])
    question(2).come('7', 10)
    question(2).over.open()
    await clock.advance(0)
    expect(question(4).ids, 'of others nothing is known').toEqual(numbers(9, 13))
  })

  it('of jobs that have places of their own keep nobody waiting', async () => {
    const { clock, reader, question, held } = story()
    reader.add(held(5, limited))
    for (const id of question(0).ids) question(0).come(id, 1_000_000)
    question(0).over.open()
    await clock.advance(0)
    reader.add(held(5, send, 21))
    expect(question(1).ids).toEqual(numbers(21, 25))
  })

  it('that do not come are given up, and others asked for after a pause that grows', async () => {
    const { clock, reader, questions, question, failed, held } = story()
    const away = new Error('connection refused')
    const [first, second, third] = [held(3), held(1, send, 4), held(1, send, 5)]
    reader.add(first)
    question(0).come('2')
    question(0).over.refuse(away)
    await clock.advance(0)
    expect(failed).toEqual([{ ids: ['1', '3'], error: away }])
    reader.add(second)
    await clock.advance(49)
    expect(questions).toHaveLength(1)
    await clock.advance(1)
    expect(question(1).ids).toEqual(['4'])
    question(1).over.refuse(away)
    await clock.advance(0)
    reader.add(third)
    await clock.advance(99)
    expect(questions).toHaveLength(2)
    await clock.advance(1)
    question(2).come('5')
    question(2).over.open()
    await clock.advance(0)
    reader.add(held(1, send, 6))
    expect(question(3).ids, 'at once again').toEqual(['6'])
  })

  it('that the ledger forgets to bring are given up as well', async () => {
    const { clock, reader, question, failed, held } = story()
    reader.add(held(2))
    question(0).come('1')
    question(0).over.open()
    await clock.advance(0)
    expect(failed).toMatchObject([{ ids: ['2'], error: { message: '1 payloads did not come' } }])
  })

  it('nobody wants any more are not told of, and nothing is asked for after the end', async () => {
    const { clock, reader, questions, question, read, failed, held } = story()
    const [first, second] = held(2) as [Held, Held]
    reader.add([first, second])
    reader.left(first)
    reader.left(second)
    question(0).come('1')
    question(0).over.refuse(new Error('connection refused'))
    await clock.advance(0)
    expect([read, failed]).toEqual([[], []])
    reader.close()
    reader.add(held(1, send, 3))
    await clock.advance(60_000)
    expect(questions).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })
})
