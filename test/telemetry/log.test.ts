// The log as it is written: JSON lines or short ones, with the ids of the job and without what nobody may read.
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { defineJob, openRedrive, PermanentError } from '../../src/index.js'
import { defaultLogger } from '../../src/telemetry/default-logger.js'
import type { LogLevel } from '../../src/telemetry/log.js'
import { manualClock } from '../../src/testing/index.js'
import { embeddedCopy } from '../support/databases.js'

const NOON = Date.UTC(2026, 0, 31, 12)

function written(level: LogLevel, isTTY = false) {
  const lines: string[] = []
  const log = defaultLogger(level, manualClock(NOON), { isTTY, write: line => lines.push(line) })
  return { log, lines, json: () => lines.map(line => JSON.parse(line)) }
}

describe('the default logger', () => {
  it('writes one JSON line each, of its level and above', () => {
    const { log, lines, json } = written('warn')
    log.info({ a: 1 }, 'quiet')
    log.warn({ job: 'x', attempt: 2 }, 'loud')
    log.error({}, 'louder')
    expect(json()).toEqual([
      { level: 'warn', time: '2026-01-31T12:00:00.000Z', job: 'x', attempt: 2, msg: 'loud' },
      { level: 'error', time: '2026-01-31T12:00:00.000Z', msg: 'louder' },
    ])
    expect(lines.every(line => line.endsWith('}\n'))).toBe(true)
    const silence = written('silent')
    silence.log.error({}, 'nothing')
    expect(silence.lines).toEqual([])
  })

  it('redacts secrets by name and by look, in fields, errors and words', () => {
    const { log, lines, json } = written('debug')
    log.debug({ password: 'hunter2', deep: { apiKey: 'abc' }, url: 'https://u:hunter2@h' }, 'token=hunter2')
    log.error({ error: new Error('Bearer abcdefgh.hunter2') }, 'failed')
    expect(lines.join('')).not.toContain('hunter2')
    expect(json()[0]).toMatchObject({ password: '[redacted]', deep: { apiKey: '[redacted]' }, msg: 'token=[redacted]' })
    expect(json()[1].error).toMatchObject({ type: 'Error', message: 'Bearer [redacted]' })
  })

  it('never fails its writer', () => {
    const { log, json } = written('debug')
    const circle: Record<string, unknown> = { big: 1n }
    circle.self = circle
    log.warn(circle, 'round')
    log.warn({ big: 1n, not: undefined, fn: () => 1 }, 'odd')
    expect(json()).toMatchObject([
      { msg: 'round', big: '1' },
      { msg: 'odd', big: '1' },
    ])
  })

  it('writes short lines for a terminal, which obeys nothing in them', () => {
    const { log, lines } = written('debug', true)
    log.warn({ queue: 'mail', reason: 'a b\u001b[2J\nc', jobs: 3 }, 'evil\u001b[31m\r\n\u{e0002}words\u001b')
    expect(lines).toEqual(['12:00:00 warn  evil words  queue=mail reason="a b\\u001b[2J\\nc" jobs=3\n'])
  })
})

it('lines of a job carry its ids and never its payload; a pino of your own is used as it is', {
  timeout: 180_000,
}, async () => {
  const lines: string[] = []
  const logger = pino({ level: 'debug', base: null }, { write: line => void lines.push(line) })
  const redrive = await openRedrive({ database: await embeddedCopy(), env: {}, logger, name: 'p' })
  const job = defineJob({
    name: 'logs',
    queue: 'q',
    handler: (_: { card: string }, { log }) => {
      log.info('here', { step: 1 })
      throw new PermanentError('no')
    },
  })
  redrive.work([job], { name: 'w' })
  const dead = new Promise(resolve => redrive.on('job.dead', resolve))
  const { id } = await redrive.enqueue(job, { card: '4111-1111' })
  await dead
  await redrive.close()
  const said = lines.map(line => JSON.parse(line))
  const ids = { job: id, attempt: 1, queue: 'q', name: 'logs', worker: 'w' }
  expect(said.find(({ msg }) => msg === 'here')).toMatchObject({ ...ids, step: 1, level: 30 })
  expect(said.find(({ msg }) => msg === 'job died')).toMatchObject({ ...ids, kind: 'permanent' })
  expect(said.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['worker started', 'worker stopped']))
  expect(lines.join('')).not.toContain('4111')
})
