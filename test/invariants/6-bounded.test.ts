// Everything that comes from outside is bounded, and what is cut shows it. One case for each limit: a new limit does
// not compile until it is here. Seen red: with larger limits in toText and checkKey, without the mark in cap, and
// with notes that are not capped.
import { beforeAll, describe, expect, it } from 'vitest'
import { cap, LIMITS } from '../../src/domain/limits.js'
import { DEFAULT_POLICY } from '../../src/domain/policy.js'
import { bury, cancel, defineJob, type Handler, PermanentError, snooze } from '../../src/index.js'
import { type Library, openLibrary } from '../support/library.js'

let library: Library
beforeAll(async () => {
  library = await openLibrary('memory')
})

const long = (chars: number) => 'x'.repeat(chars + 7)
/** How many of the characters were kept and are said to be missing: together all of them, within the limit. */
function expectCut(text: string | undefined, chars: number) {
  const [, kept = '', missing] = /^(x+) … \[(\d+) more characters cut\]$/.exec(text ?? '') ?? []
  expect(kept.length + Number(missing)).toBe(chars + 7)
  expect(text?.length).toBeLessThanOrEqual(chars)
}

/** Runs one job to its end, and returns its dead letter. */
async function deathOf(name: string, handler: Handler<unknown, unknown>) {
  const { redrive, next } = library
  const job = defineJob({ name, queue: name, retry: { attempts: 1 }, handler })
  const died = next('job.dead', event => event.job.name === name)
  const { id } = await redrive.enqueue(job, null)
  const worker = redrive.work([job])
  await died
  await worker.stop()
  return redrive.operator.deadLetters.get(id)
}

const refused = (code: string) => expect.objectContaining({ code })

const CASES: Readonly<Record<keyof typeof LIMITS, () => Promise<void>>> = {
  payloadBytes: async () => {
    const job = defineJob<string>({ name: 'p' })
    await expect(library.redrive.enqueue(job, long(LIMITS.payloadBytes))).rejects.toEqual(refused('PAYLOAD_TOO_LARGE'))
    const umlauts = 'ü'.repeat(LIMITS.payloadBytes / 2)
    await expect(library.redrive.enqueue(job, umlauts)).rejects.toEqual(refused('PAYLOAD_TOO_LARGE'))
    await library.redrive.enqueue(job, 'x'.repeat(LIMITS.payloadBytes - 2))
  },
  resultBytes: async () => {
    const { errorCode } = await deathOf('result', async () => long(LIMITS.resultBytes))
    expect(errorCode).toBe('RESULT_TOO_LARGE')
  },
  progressBytes: async () => {
    const { errorCode } = await deathOf('progress', (_, { progress }) => progress(long(LIMITS.progressBytes)))
    expect(errorCode).toBe('RESULT_TOO_LARGE')
  },
  messageChars: async () => {
    const { message, attempts } = await deathOf('message', async () => {
      throw new PermanentError(long(LIMITS.messageChars))
    })
    expectCut(message, LIMITS.messageChars)
    expect(attempts[0]?.message === message).toBe(true)
  },
  stackChars: async () => {
    const { stack } = await deathOf('stack', async () => {
      throw Object.assign(new PermanentError('deep'), { stack: long(LIMITS.stackChars) })
    })
    expectCut(stack, LIMITS.stackChars)
  },
  causes: async () => {
    const deep = (levels: number): Error =>
      new PermanentError(`level ${levels}`, levels > 0 ? { cause: deep(levels - 1) } : {})
    const { causes } = await deathOf('causes', async () => {
      throw deep(50)
    })
    expect(causes.length).toBeLessThanOrEqual(LIMITS.causes)
    expect(causes.length).toBeGreaterThan(0)
  },
  reasonChars: async () => {
    const { redrive, next } = library
    const job = defineJob({ name: 'reason', queue: 'reason', handler: async () => cancel(long(LIMITS.reasonChars)) })
    const cancelled = next('job.cancelled')
    const { id } = await redrive.enqueue(job, null)
    const worker = redrive.work([job])
    await cancelled
    await worker.stop()
    expectCut((await redrive.operator.jobs.get(id))?.reason, LIMITS.reasonChars)
    const { reason } = await deathOf('buried', async () => bury(long(LIMITS.reasonChars)))
    expect(reason).toMatch(/more characters cut\]$/)
  },
  notesChars: async () => {
    const { id } = await deathOf('notes', async () => bury('no'))
    const { notes } = await library.redrive.operator.deadLetters.annotate(id, { notes: long(LIMITS.notesChars) })
    expectCut(notes, LIMITS.notesChars)
  },
  nameChars: async () => {
    expect(() => defineJob({ name: long(LIMITS.nameChars) })).toThrow(/1 to 200 characters/)
    expect(() => defineJob({ name: 'a', queue: long(LIMITS.nameChars) })).toThrow(/1 to 200 characters/)
    const { id } = await deathOf('named', async () => bury('no'))
    const assignedTo = long(LIMITS.nameChars)
    const annotated = await library.redrive.operator.deadLetters.annotate(id, { assignedTo })
    expectCut(annotated.assignedTo, LIMITS.nameChars)
  },
  keyChars: async () => {
    const job = defineJob({ name: 'keyed' })
    for (const key of ['uniqueKey', 'tenant', 'user', 'project']) {
      const options = { [key]: long(LIMITS.keyChars) }
      await expect(library.redrive.enqueue(job, null, options)).rejects.toThrow(/text of 1 to 512 characters/)
    }
  },
  enqueueBatch: async () => {
    const items = Array.from({ length: LIMITS.enqueueBatch + 1 }, () => ({ payload: null }))
    await expect(library.redrive.enqueueMany(defineJob({ name: 'batch' }), items)).rejects.toThrow(/at most 10000/)
  },
  delayMs: async () => {
    const delayMs = LIMITS.delayMs + 1
    await expect(library.redrive.enqueue(defineJob({ name: 'late' }), null, { delayMs })).rejects.toThrow(/^delayMs is/)
    expect(() => snooze(delayMs)).toThrow(/^A snooze is/)
  },
}

describe('invariant 6: bounded', () => {
  it.each(Object.entries(CASES))('invariant 6: %s', async (_, holds) => {
    await holds()
  })

  it('invariant 6: what is cut says how much is missing, and what cannot be stored is replaced', () => {
    expect(cap('short', 5)).toBe('short')
    const once = cap('x'.repeat(1_000), 100)
    expect(once).toBe(`${'x'.repeat(71)} … [929 more characters cut]`)
    expect(cap(once, 100), 'capped again it says the same').toBe(once)
    expect(cap('a\0b\ud800', 10)).toBe('a\uFFFDb\uFFFD')
    expect(cap(`${'😀'.repeat(500)}`, 100).isWellFormed(), 'a pair is not cut in half').toBe(true)
  })

  it('invariant 6: a handler that says nothing itself is timed out after a quarter of an hour', () => {
    expect(DEFAULT_POLICY.timeoutMs).toBe(900_000)
  })

  it('invariant 6: lists have a limit, by default and at most', async () => {
    const { deadLetters } = library.redrive.operator
    expect((await deadLetters.list()).items.length).toBeLessThanOrEqual(50)
    for (const limit of [0, 201, 1.5]) {
      await expect(deadLetters.list({}, { limit })).rejects.toThrow(
        /^limit is .*; it must be a whole number from 1 to 200/,
      )
    }
    await expect(deadLetters.list({}, { offset: 100_001 })).rejects.toThrow(/^offset is/)
    await expect(deadLetters.list({}, { cursor: '1; DROP' })).rejects.toThrow(/^cursor is/)
  })
})
