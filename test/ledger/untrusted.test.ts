// Invariant 9: what comes from outside stays data. Nasty texts go through every door of the ledger and come out as
// they were, or cut with a visible mark (invariant 6); none of them ever becomes SQL.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { LIMITS } from '../../src/domain/limits.js'
import { attemptsOf } from '../../src/ledger/attempt.js'
import { readAudit, writeAudit } from '../../src/ledger/audit.js'
import { cancelJob } from '../../src/ledger/cancel.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { getDeadLetter, listDeadLetters } from '../../src/ledger/dead-letter.js'
import { annotate, markFailed } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob, saveProgress, waitingIn } from '../../src/ledger/job.js'
import { newestPolicies, setPolicy } from '../../src/ledger/policy.js'
import { ensureQueues, pauseQueue, queueSettings, queueStatistics } from '../../src/ledger/queue.js'
import { settle } from '../../src/ledger/settle.js'
import { beforeFirst, DATABASES } from '../support/databases.js'
import { aFailure, aJob, aSession, buried, completed, retried, take } from '../support/story.js'

/** Texts that any text column can hold. */
const NASTY: readonly (readonly [string, string])[] = [
  ['quotes', `it's "quoted" \`so\` and ''doubled''`],
  ['a statement', "'; DROP TABLE redrive.job; --"],
  ['placeholders', '$1 $2 $$ $a$ :name ? %s %I'],
  ['our own markers', 'redrive.job redrive_schema_name "redrive".job'],
  ['HTML', '<script>alert(1)</script><img src=x onerror=alert(1)>&amp;'],
  ['emoji and other scripts', '👩‍👩‍👧‍👦 naïve שלום こんにちは \u202e\u200b'],
  ['control characters', 'tab\tline\nreturn\r bell\u0007 escape\u001b[31m'],
  ['backslashes', "\\ \\n \\u0000 \\\\ \\x00 E'\\'"],
  ['LIKE and regex', '%_.*(a+)+$[x]'],
]

/** Only JSON can hold these: Postgres text cannot. */
const UNSTORABLE: readonly (readonly [string, string])[] = [
  ['NUL', 'before\u0000after'],
  ['half a surrogate pair', 'before\ud83dafter'],
]

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open }) => {
  let db: Database
  beforeFirst(async () => {
    db = (await open()).db
  })

  /** One job with this name of queue and job, claimed. */
  async function claimed(text: string, payload: unknown = {}) {
    const job = aJob({
      queue: text,
      name: text,
      tenant: text,
      user: text,
      project: text,
      service: text,
      uniqueKey: text,
      payloadText: JSON.stringify(payload),
    })
    await ensureQueues(db, [text])
    const [enqueued] = [...(await enqueue(db, [job], 'channel')).values()]
    expect(enqueued).toEqual({ id: job.id, deduplicated: false })
    const session = await aSession(db)
    const [taken] = await take(db, session, 1, text, text)
    if (!taken) throw new Error('the job was to be claimed')
    expect(taken).toMatchObject({ queue: text, name: text, tenant: text, user: text, project: text, uniqueKey: text })
    return taken
  }

  it.each(NASTY)('%s: as every name of a job, its payload, progress and result', async (_what, text) => {
    const payload = { [text]: [text, { deep: text }] }
    const job = await claimed(text, payload)
    expect(JSON.parse(job.payloadText)).toEqual(payload)
    expect(await saveProgress(db, job.id, job.lease, JSON.stringify({ text }))).toBe(true)
    expect(await findJob(db, job.id)).toMatchObject({ payload, progress: { text }, queue: text, uniqueKey: text })
    expect(await settle(db, [completed(job, { [text]: text })], '1')).toEqual([])
    expect(await findJob(db, job.id)).toMatchObject({ state: 'completed', result: { [text]: text } })
    expect((await queueStatistics(db)).find(row => row.queue === text)).toMatchObject({ completed: 1 })
  })

  it.each(NASTY)('%s: as everything an error can say, on attempts and dead letters', async (_what, text) => {
    const job = await claimed(text)
    const failure = aFailure({
      message: text,
      stack: text,
      type: text,
      code: text,
      because: text,
      service: text,
      fingerprint: text,
      causes: [{ type: text, message: text, code: text }],
    })
    expect(await settle(db, [buried(job, failure, text)], '1')).toEqual([])
    const seen = { message: text, stack: text, errorType: text, errorCode: text, reason: text, causes: failure.causes }
    expect(await getDeadLetter(db, job.id)).toMatchObject({ ...seen, fingerprint: text })
    expect(await attemptsOf(db, job.id)).toMatchObject([seen])
    await annotate(db, job.id, { notes: text, assignedTo: text })
    const filter = { queue: text, name: text, service: text, fingerprint: text, assignedTo: text, text }
    expect((await listDeadLetters(db, filter, { limit: 10 })).items).toMatchObject([{ id: job.id, notes: text }])
    await markFailed(db, job.id, text)
    expect(await getDeadLetter(db, job.id)).toMatchObject({ status: 'permanently_failed', resolution: text })
  })

  it.each(NASTY)('%s: as what people write about queues, jobs and in the audit', async (_what, text) => {
    await pauseQueue(db, text, text)
    expect(await queueSettings(db, [text])).toMatchObject([{ name: text, paused: true, pausedBy: text }])
    const target = { scope: 'job', target: text } as const
    await setPolicy(db, target, { policy: { [text]: text }, setBy: text, reason: text })
    expect(await newestPolicies(db, [target])).toMatchObject([{ policy: { [text]: text }, setBy: text, reason: text }])
    const job = aJob({ queue: text, name: text })
    await enqueue(db, [job], null)
    expect(await cancelJob(db, job.id, text)).toBe('cancelled')
    expect(await findJob(db, job.id)).toMatchObject({ state: 'cancelled', reason: text })
    const entry = { actor: text, action: text, target: text, before: text, after: { [text]: text }, reason: text }
    await writeAudit(db, { ...entry, targetType: 'queue' })
    expect(await readAudit(db, { targetType: 'queue', target: text, limit: 1 })).toMatchObject([entry])
  })

  it.each(UNSTORABLE)('%s: kept in payload, result, progress and audit', async (what, text) => {
    const job = await claimed(what, { [text]: text })
    expect(JSON.parse(job.payloadText)).toEqual({ [text]: text })
    await saveProgress(db, job.id, job.lease, JSON.stringify(text))
    await settle(db, [completed(job, [text])], '1')
    expect(await findJob(db, job.id)).toMatchObject({ payload: { [text]: text }, result: [text] })
    await writeAudit(db, {
      actor: 'ada',
      action: 'edit',
      targetType: 'job',
      target: job.id,
      before: text,
      reason: text,
    })
    const [entry] = await readAudit(db, { targetType: 'job', target: job.id, limit: 1 })
    expect(entry).toMatchObject({ before: text, reason: 'before\ufffdafter' })
  })

  it.each(UNSTORABLE)('%s: replaced by U+FFFD in what an error says', async (what, text) => {
    const job = await claimed(what)
    const causes = [{ type: text, message: text }]
    const failure = aFailure({
      message: text,
      stack: text,
      type: text,
      code: text,
      because: text,
      service: text,
      causes,
    })
    expect(await settle(db, [retried(job, 0, failure)], '1')).toEqual([])
    const shown = 'before\ufffdafter'
    expect(await attemptsOf(db, job.id)).toMatchObject([
      { message: shown, stack: shown, errorType: shown, errorCode: shown, because: shown, service: shown },
    ])
    const session = await aSession(db)
    const again = await take(db, session, 1, what, what)
    expect(
      await settle(
        db,
        again.map(next => buried(next, failure, text)),
        '1',
      ),
    ).toEqual([])
    expect(await getDeadLetter(db, job.id)).toMatchObject({ message: shown, reason: shown })
  })

  it.each(UNSTORABLE)('%s: as a tenant, refused as a whole', async (_what, text) => {
    const before = await db.query(sql`SELECT count(*) AS jobs FROM redrive.job`)
    await expect(enqueue(db, [aJob(), aJob({ tenant: text })], null)).rejects.toMatchObject({
      code: expect.stringMatching(/^22P0[25]$/),
    })
    expect(await db.query(sql`SELECT count(*) AS jobs FROM redrive.job`)).toEqual(before)
  })

  it('a megabyte: kept in a payload, cut with a mark in what an error says', async () => {
    const text = 'é👍'.repeat(350_000)
    const job = await claimed('large', { text })
    expect(JSON.parse(job.payloadText)).toEqual({ text })
    await settle(db, [buried(job, aFailure({ message: text, stack: text, type: text, because: text }), text)], '1')
    const letter = await getDeadLetter(db, job.id)
    const mark = / … \[\d+ more characters cut\]$/
    for (const [field, limit] of [
      ['message', LIMITS.messageChars],
      ['stack', LIMITS.stackChars],
      ['reason', LIMITS.reasonChars],
      ['because', 500],
      ['errorType', 500],
    ] as const) {
      expect(letter?.[field], field).toMatch(mark)
      expect(letter?.[field]?.length, field).toBeLessThan(limit + 50)
    }
    expect(letter?.payload).toEqual({ text })
  })

  it('a payload that is no JSON is refused, and an id that is none finds nothing', async () => {
    await expect(enqueue(db, [aJob({ queue: 'bad', payloadText: '{"a": ' })], null)).rejects.toMatchObject({
      code: '22P02',
    })
    expect(await waitingIn(db, 'bad')).toBe(0)
    await expect(findJob(db, "' OR true --" as JobId)).rejects.toMatchObject({ code: '22P02' })
  })
})
