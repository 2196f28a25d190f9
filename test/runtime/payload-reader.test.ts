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
  const errors: unknown[] = []
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
    onRead: held => read.push(held.map(({ job }) => String(job.id))),
    onError: error => errors.push(error),
  })
  const held = (count: number, definition = send, from = 1): Held[] =>
    Array.from({ length: count }, (_, nth) => {
      const job = { id: String(from + nth) as JobId, payloadText: '', apart: true } as ClaimedJob
      return { job, definition } as unknown as Held
    })
  const question = (nth: number) => questions[nth] as Question
  return { clock, reader, questions, question, read, errors, held }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, nth) => String(from + nth))

describe('large payloads', () => {
  it('are asked for in the order of the line, two questions at a time', async () => {
    const { clock, reader, questions, question, held } = story()
    reader.add(held(50))
    expect(questions.map(({ ids }) => ids)).toEqual([numbers(1, 20), numbers(21, 40)])
    for (const id of question(0).ids) question(0).come(id)
    question(0).over.open()
    await clock.advance(0)
    expect(question(2).ids).toEqual(numbers(41, 50))
  })

  it('are told of as they come, what comes in one turn at once', async () => {
    const { clock, reader, question, read, held } = story()
    const all = held(3)
    reader.add(all)
    question(0).come('1')
    question(0).come('2')
    expect(read, 'not from within what brought them').toEqual([])
    await clock.advance(0)
    question(0).come('3')
    await clock.advance(0)
    expect(read).toEqual([['1', '2'], ['3']])
    question(0).over.open()
    await clock.advance(0)
    for (const each of all) reader.left(each)
  })

  it('wait while a million characters are ready to run', async () => {
    const { clock, reader, questions, question, held } = story()
    const all = held(60)
    reader.add(all)
    for (const nth of [0, 1]) {
      for (const id of question(nth).ids) question(nth).come(id, 40_000)
      question(nth).over.open()
    }
    await clock.advance(0)
    expect(questions, 'forty of them are enough').toHaveLength(2)
    for (const each of all.slice(0, 15)) reader.left(each)
    expect(questions, 'a million are').toHaveLength(2)
    reader.left(all[15] as Held)
    expect(question(2).ids, 'as many as are worth a question').toEqual(numbers(41, 60))
  })

  it('are asked for one by one where each is worth a question', async () => {
    const { clock, reader, questions, question, held } = story()
    const first = held(20)
    reader.add(first)
    for (const id of question(0).ids) question(0).come(id, 3_000_000)
    question(0).over.open()
    await clock.advance(0)
    reader.add(held(5, send, 21))
    expect(questions, 'the first are enough').toHaveLength(1)
    for (const each of first) reader.left(each)
    expect(questions.map(({ ids }) => ids).slice(1)).toEqual([['21'], ['22']])
  })

  it('of jobs that wait for their rate limit keep nobody waiting', async () => {
    const { clock, reader, question, held } = story()
    reader.add(held(20, limited))
    reader.add(held(5, send, 21))
    for (const id of question(0).ids) question(0).come(id, 1_000_000)
    question(0).over.open()
    await clock.advance(0)
    expect(question(1).ids).toEqual(numbers(21, 25))
  })

  it('are asked for again when they did not come, but not those that did', async () => {
    const { clock, reader, questions, question, errors, held } = story()
    reader.add(held(3))
    question(0).come('2')
    const away = new Error('connection refused')
    question(0).over.refuse(away)
    await clock.advance(49)
    expect(questions).toHaveLength(1)
    await clock.advance(1)
    expect(question(1).ids).toEqual(['1', '3'])
    question(1).over.refuse(away)
    await clock.advance(100)
    expect(question(2).ids).toEqual(['1', '3'])
    expect(errors).toEqual([away, away])
  })

  it('are not asked for when nobody wants them any more', async () => {
    const { clock, reader, questions, question, read, held } = story()
    const [first, second, third] = held(3) as [Held, Held, Held]
    reader.add([first, second])
    reader.left(first)
    question(0).come('1')
    question(0).over.refuse(new Error('connection refused'))
    await clock.advance(50)
    expect(question(1).ids).toEqual(['2'])
    reader.left(second)
    question(1).over.refuse(new Error('connection refused'))
    await clock.advance(60_000)
    expect(questions).toHaveLength(2)
    expect(read).toEqual([])
    reader.add([third])
    expect(question(2).ids).toEqual(['3'])
    reader.close()
    question(2).over.refuse(new Error('connection refused'))
    await clock.advance(60_000)
    expect(questions).toHaveLength(3)
  })
})
