// Triage rules at work: each dead letter is looked at once, at its time, by whoever runs the rules; what a rule did is
// counted on the letter and audited; nothing goes round for ever.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import type { TriageRuleDraft } from '../../src/domain/triage.js'
import { readAudit } from '../../src/ledger/audit.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { pointGroups } from '../../src/ledger/group-change.js'
import { makeGroups } from '../../src/ledger/group-notice.js'
import { ensureQueues } from '../../src/ledger/queue.js'
import { settle } from '../../src/ledger/settle.js'
import { changeTriageRule, createTriageRule } from '../../src/ledger/triage-rule.js'
import { runTriage, type TriageDone, tryTriage } from '../../src/ledger/triage-run.js'
import { checkTriageRule, judge } from '../../src/policy/triage.js'
import { EMBEDDED_AND_SERVER, everything } from '../support/ledger-state.js'
import { aFailure, aJob, aSession, buried, take } from '../support/story.js'

async function dead(db: Database, count: number, fingerprint = 'v1:busy', queue = 'mail'): Promise<JobId[]> {
  await ensureQueues(db, [queue])
  await enqueue(
    db,
    Array.from({ length: count }, () => aJob({ queue })),
    null,
  )
  const jobs = await take(db, await aSession(db), count, queue)
  await settle(
    db,
    jobs.map(job => buried(job, aFailure({ fingerprint }))),
    '0',
  )
  return jobs.map(({ id }) => id)
}

/** A redriven job dies again. */
async function dieAgain(db: Database, count = 1): Promise<void> {
  const jobs = await take(db, await aSession(db), count)
  expect(jobs).toHaveLength(count)
  await settle(
    db,
    jobs.map(job => buried(job)),
    '0',
  )
}

const add = (db: Database, draft: TriageRuleDraft) => createTriageRule(db, checkTriageRule(draft), 'ada')

async function run(db: Database, between = async () => {}) {
  const done: TriageDone[] = []
  const woken: string[] = []
  const result = await runTriage(db, {
    judge,
    onDone: what => void done.push(what),
    onWork: queue => void woken.push(queue),
    between,
  })
  return { ...result, done, woken }
}

const acted = async (db: Database) => (await run(db)).rules.map(rule => rule.acted)

describe.each(EMBEDDED_AND_SERVER)('$name', ({ open }) => {
  const NOW = '2031-05-01T10:00:00.000Z'

  it('does what each rule says, and audits it in the name of the rule', async () => {
    const { db, clock } = await open({ now: NOW })
    const [a] = await dead(db, 1, 'v1:a', 'a')
    const [b] = await dead(db, 1, 'v1:b', 'b')
    const [c] = await dead(db, 1, 'v1:c', 'c')
    const [d] = await dead(db, 1, 'v1:d', 'd')
    const [e] = await dead(db, 1, 'v1:e', 'e')
    await add(db, { name: 'retry a', match: { queue: 'a' }, action: { type: 'retry', afterMs: 0 } })
    await add(db, { name: 'drop b', match: { queue: 'b' }, action: { type: 'discard', reason: 'known to be futile' } })
    await add(db, { name: 'give c', match: { queue: 'c' }, action: { type: 'assign', to: 'bob' } })
    await add(db, { name: 'rush d', match: { queue: 'd' }, action: { type: 'prioritise', priority: 9 } })
    await add(db, { name: 'call e', match: { queue: 'e' }, action: { type: 'escalate', message: 'look!' } })
    clock.advance(1_000)
    const { done, woken, rules, complete, looked } = await run(db)
    expect(rules.map(({ rule, action, acted }) => [rule, action, acted])).toEqual([
      ['retry a', 'retry', 1],
      ['drop b', 'discard', 1],
      ['give c', 'assign', 1],
      ['rush d', 'prioritise', 1],
      ['call e', 'escalate', 1],
    ])
    expect({ complete, looked, woken }).toEqual({ complete: true, looked: 5, woken: ['a'] })
    expect(done.map(({ rule, letters }) => [rule.name, letters.map(({ id }) => id)])).toContainEqual(['call e', [e]])
    expect(await getDeadLetter(db, a as JobId)).toMatchObject({ status: 'redriving', recoveryAttempts: 1 })
    expect(await getDeadLetter(db, b as JobId)).toMatchObject({
      status: 'permanently_failed',
      resolution: 'known to be futile',
      resolvedAt: new Date('2031-05-01T10:00:01Z'),
    })
    expect(await getDeadLetter(db, c as JobId)).toMatchObject({ status: 'pending', assignedTo: 'bob' })
    expect(await getDeadLetter(db, d as JobId)).toMatchObject({ status: 'pending', priority: 9 })
    expect(await getDeadLetter(db, e as JobId)).toMatchObject({ status: 'pending' })
    const audit = async (id?: JobId) => readAudit(db, { targetType: 'dead_letter', target: id as string, limit: 10 })
    expect(await audit(b)).toMatchObject([
      {
        actor: 'triage rule drop b',
        action: 'triage discard',
        before: { status: 'pending' },
        after: { type: 'discard', times: 1 },
        reason: 'known to be futile',
      },
    ])
    for (const id of [a, c, d, e]) expect(await audit(id)).toHaveLength(1)
    clock.advance(1_000)
    expect(await acted(db), 'and once is enough').toEqual([0, 0, 0, 0, 0])
  })

  it('a dry run says what would match, and changes nothing', async () => {
    const { db } = await open({ now: NOW })
    await dead(db, 7)
    await dead(db, 2, 'v1:other', 'other')
    await add(db, { name: 'later', match: { queue: 'other' }, action: { type: 'retry', afterMs: 60_000 } })
    await add(db, { name: 'some', match: { queue: 'mail' }, action: { type: 'assign', to: 'x' }, maxPerRun: 5 })
    const off = {
      name: 'off',
      match: { kind: 'transient' as const },
      action: { type: 'discard' as const, reason: 'no' },
    }
    await add(db, { ...off, enabled: false, position: 1 })
    const before = await everything(db)
    expect(await tryTriage(db, judge)).toMatchObject({
      dryRun: true,
      looked: 9,
      complete: true,
      rules: [
        { rule: 'later', acted: 0, waiting: 2, sample: [{ queue: 'other' }, { queue: 'other' }] },
        { rule: 'some', acted: 5, waiting: 2 },
      ],
    })
    expect((await tryTriage(db, judge)).rules[1]?.sample).toHaveLength(5)
    expect((await tryTriage(db, judge, 'off')).rules).toMatchObject([
      { rule: 'off', acted: 9 },
      { rule: 'later', waiting: 0 },
      { rule: 'some', acted: 0 },
    ])
    expect(await everything(db)).toEqual(before)
  })

  it('a retry waits for its time, and comes round only as often as it may, over all lives', async () => {
    const { db, clock } = await open({ now: NOW })
    const [id] = await dead(db, 1)
    const retry = { type: 'retry', afterMs: 60_000 } as const
    await add(db, { name: 'again', match: { kind: 'transient' }, action: retry, maxPerLetter: 2 })
    await add(db, { name: 'then', match: { kind: 'transient' }, action: { type: 'escalate', message: 'help' } })
    expect(await run(db)).toMatchObject({ rules: [{ acted: 0, waiting: 1 }, { acted: 0 }] })
    for (let round = 1; round <= 2; round += 1) {
      clock.advance(59_000)
      expect(await acted(db)).toEqual([0, 0])
      clock.advance(1_000)
      expect(await acted(db)).toEqual([1, 0])
      await dieAgain(db)
    }
    clock.advance(60_000)
    expect(await acted(db), 'the next rule gets its turn').toEqual([0, 1])
    for (let later = 0; later < 5; later += 1) {
      clock.advance(3_600_000)
      expect(await acted(db)).toEqual([0, 0])
    }
    expect(await getDeadLetter(db, id as JobId)).toMatchObject({ status: 'pending', recoveryAttempts: 2 })
  })

  it('an old letter is found when it is old enough, though nothing else happens to it', async () => {
    const { db, clock } = await open({ now: NOW })
    await dead(db, 3)
    await add(db, { name: 'old', match: { olderThanMs: 86_400_000 }, action: { type: 'discard', reason: 'too old' } })
    expect(await acted(db)).toEqual([0])
    clock.advance(86_399_000)
    expect(await acted(db)).toEqual([0])
    clock.advance(1_000)
    expect(await acted(db)).toEqual([3])
  })

  it('no more than so many a run; the others are not forgotten', async () => {
    const { db, clock } = await open({ now: NOW })
    await dead(db, 25)
    await add(db, { name: 'ten', match: { queue: 'mail' }, action: { type: 'assign', to: 'ada' }, maxPerRun: 10 })
    const runs: (readonly number[])[] = []
    for (let nth = 0; nth < 4; nth += 1) {
      clock.advance(1_000)
      runs.push(await acted(db))
    }
    expect(runs).toEqual([[10], [10], [5], [0]])
  })

  it('a new rule looks at what is there already; what nobody wants is not looked at again and again', async () => {
    const { db, clock } = await open({ now: NOW })
    await dead(db, 2_500)
    await add(db, { name: 'none', match: { queue: 'no such queue' }, action: { type: 'assign', to: 'ada' } })
    clock.advance(600_000)
    expect(await run(db)).toMatchObject({ looked: 2_500, complete: true })
    expect((await run(db)).looked).toBe(0)
    await dead(db, 1, 'v1:new')
    expect((await run(db)).looked).toBe(1)
    await add(db, {
      name: 'all',
      match: { queue: 'mail' },
      action: { type: 'prioritise', priority: 1 },
      maxPerRun: 10_000,
    })
    expect(await acted(db)).toEqual([0, 2_501])
  })

  it.each([
    ['letters whose time has come', 1],
    ['letters that are new', 2],
  ])('a rule that is changed while a run looks at %s is asked about all of them by the next', async (_what, nth) => {
    const { db, clock } = await open({ now: NOW })
    await dead(db, 3)
    const rule = { name: 'mine', match: { queue: 'other' }, action: { type: 'assign', to: 'ada' } } as const
    await add(db, rule)
    clock.advance(600_000) // no late death can appear among them
    let looks = 0
    const first = await run(db, async () => {
      looks += 1
      if (looks === nth) await changeTriageRule(db, checkTriageRule({ ...rule, match: { queue: 'mail' } }), 'ada')
    })
    expect(first).toMatchObject({ looked: 3, complete: false, rules: [{ acted: 0 }] })
    expect(await run(db)).toMatchObject({ looked: 3, complete: true, rules: [{ acted: 3 }] })
  })

  it('a rule for a group has what was merged into it, too', async () => {
    const { db } = await open({ now: NOW })
    for (const fingerprint of ['v1:a', 'v1:b', 'v1:c']) await dead(db, 1, fingerprint)
    await makeGroups(db)
    await pointGroups(db, ['v1:b'], 'v1:a')
    await add(db, { name: 'group', match: { group: 'v1:b' }, action: { type: 'assign', to: 'ada' } })
    expect(await acted(db)).toEqual([2])
  })

  it('a letter whose unique key is taken stays open, and is not tried for ever', async () => {
    const { db, clock } = await open({ now: NOW })
    await ensureQueues(db, ['mail'])
    await enqueue(db, [aJob({ uniqueKey: 'k' })], null)
    const [job] = await take(db, await aSession(db), 1)
    await settle(db, [buried(job as never)], '0')
    await enqueue(db, [aJob({ uniqueKey: 'k' })], null)
    await add(db, { name: 'again', match: { queue: 'mail' }, action: { type: 'retry', afterMs: 0 }, maxPerLetter: 2 })
    const conflicts: number[] = []
    for (let nth = 0; nth < 4; nth += 1) {
      clock.advance(1_000)
      conflicts.push((await run(db)).rules[0]?.conflicts ?? -1)
    }
    expect(conflicts).toEqual([1, 1, 0, 0])
    expect(await getDeadLetter(db, job?.id as JobId)).toMatchObject({ status: 'pending', recoveryAttempts: 0 })
  })

  it('two that run the rules at once do each thing once', async () => {
    const { db, another } = await open()
    await dead(db, 300)
    await add(db, { name: 'again', match: { queue: 'mail' }, action: { type: 'retry', afterMs: 0 }, maxPerLetter: 1 })
    const results = await Promise.all([run(db), run(another()), run(another())])
    expect(results.flatMap(({ rules }) => rules).reduce((sum, rule) => sum + rule.acted, 0)).toBe(300)
    const [audit] = await db.query<{ rows: number }>(
      sql`SELECT count(*)::integer AS rows FROM redrive.audit WHERE action = 'triage retry'`,
    )
    expect(audit?.rows).toBe(300)
  })
})
