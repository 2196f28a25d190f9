// What triage rules say of a dead letter, and what may be a rule.
import { describe, expect, it, test } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import type { ReadyRule, TriageAction, TriageLetter, TriageMatch, TriageRuleDraft } from '../../src/domain/triage.js'
import { checkTriageRule, judge } from '../../src/policy/triage.js'

const letter = (change: Partial<TriageLetter> = {}): TriageLetter => ({
  id: '00000000-0000-7000-8000-000000000001' as JobId,
  queue: 'mail',
  name: 'send',
  kind: 'network',
  service: 'smtp',
  fingerprint: 'v1:a',
  message: 'Connection REFUSED by host',
  diedAt: 1_000,
  toLookAt: false,
  triaged: {},
  ...change,
})

let made = 0
const rule = (match: TriageMatch, action: TriageAction, more: Partial<ReadyRule> = {}): ReadyRule => ({
  ...checkTriageRule({ name: 'r', match, action }),
  id: String(++made),
  version: 1,
  createdAt: new Date(0),
  createdBy: 'ada',
  updatedAt: new Date(0),
  updatedBy: 'ada',
  ...more,
})
const assign: TriageAction = { type: 'assign', to: 'ada' }

describe('matching', () => {
  test.each<[string, TriageMatch, boolean]>([
    ['its kind', { kind: 'network' }, true],
    ['another kind', { kind: 'lost' }, false],
    ['its queue and name', { queue: 'mail', name: 'send' }, true],
    ['its queue and another name', { queue: 'mail', name: 'post' }, false],
    ['its service', { service: 'smtp' }, true],
    ['another service', { service: 's3' }, false],
    ['a text of its message, in other letters', { text: 'connection refused' }, true],
    ['a text of its name', { text: 'SEN' }, true],
    ['a text that looks like a pattern', { text: '.*' }, false],
    ['its group', { group: 'g' }, true],
  ])('%s', (_what, match, matches) => {
    const one = rule(match, assign, match.group === undefined ? {} : { fingerprints: new Set(['v1:a', 'v1:b']) })
    expect(judge([one], letter(), 5_000).type).toBe(matches ? 'act' : 'leave')
  })

  it('a group that is another, or that nobody knows, matches nothing', () => {
    const other = rule({ group: 'g' }, assign, { fingerprints: new Set(['v1:b']) })
    expect(judge([other, rule({ group: 'h' }, assign)], letter(), 5_000)).toEqual({ type: 'leave', lookAt: undefined })
  })
})

describe('whose turn it is', () => {
  it('the first that matches has it', () => {
    const [first, second] = [rule({ kind: 'network' }, assign), rule({ queue: 'mail' }, assign)]
    expect(judge([rule({ kind: 'lost' }, assign), first, second], letter(), 5_000)).toEqual({
      type: 'act',
      rule: first,
    })
  })

  it('one that did all it may for this letter leaves it to the next', () => {
    const first = rule({ kind: 'network' }, { type: 'retry', afterMs: 0 })
    const second = rule({ kind: 'network' }, assign)
    const times = (count: number) => letter({ triaged: { [first.id]: count } })
    expect(judge([first, second], times(2), 5_000)).toEqual({ type: 'act', rule: first })
    expect(judge([first, second], times(3), 5_000)).toEqual({ type: 'act', rule: second })
    expect(judge([first], times(3), 5_000)).toEqual({ type: 'leave', lookAt: undefined })
  })

  it('one that waits keeps it from the next', () => {
    const first = rule({ kind: 'network' }, { type: 'retry', afterMs: 10_000 })
    const second = rule({ kind: 'network' }, { type: 'discard', reason: 'no' })
    expect(judge([first, second], letter(), 5_000)).toEqual({ type: 'wait', rule: first, until: 11_000 })
    expect(judge([first, second], letter(), 11_000)).toEqual({ type: 'act', rule: first })
  })

  it('one that wants older letters does not have it yet, and says when it will', () => {
    const old = rule({ olderThanMs: 60_000 }, { type: 'discard', reason: 'too old' })
    const later = rule({ kind: 'network' }, { type: 'retry', afterMs: 100_000 })
    expect(judge([old], letter(), 5_000)).toEqual({ type: 'leave', lookAt: 61_000 })
    expect(judge([old, rule({ kind: 'network' }, assign)], letter(), 5_000).type).toBe('act')
    expect(judge([old, later], letter(), 5_000)).toEqual({ type: 'wait', rule: later, until: 61_000 })
    expect(judge([old, later], letter(), 61_000)).toEqual({ type: 'act', rule: old })
  })
})

describe('what may be a rule', () => {
  const good: TriageRuleDraft = { name: 'r', match: { kind: 'network' }, action: assign }

  it('gets its defaults', () => {
    expect(checkTriageRule(good)).toEqual({ ...good, enabled: true, position: 100, maxPerRun: 1_000, maxPerLetter: 1 })
    expect(checkTriageRule({ ...good, action: { type: 'retry', afterMs: 0 } }).maxPerLetter).toBe(3)
  })

  test.each<[RegExp, object]>([
    [/^name is ""/, { name: '' }],
    [/^match is "empty"/, { match: {} }],
    [/^match is undefined/, { match: undefined }],
    [/^A part of match is "knid"/, { match: { knid: 'network' } }],
    [/^match.kind is "odd"/, { match: { kind: 'odd' } }],
    [/^match.text is ""/, { match: { text: '' } }],
    [/^match.olderThanMs is -1/, { match: { olderThanMs: -1 } }],
    [/^action.type is undefined/, { action: undefined }],
    [/^action.type is "delete"; it must be one of retry, discard/, { action: { type: 'delete' } }],
    [/^action.afterMs is undefined/, { action: { type: 'retry' } }],
    [/^action.reason is " "/, { action: { type: 'discard', reason: ' ' } }],
    [/^action.to is 7/, { action: { type: 'assign', to: 7 } }],
    [/^action.priority is 11/, { action: { type: 'prioritise', priority: 11 } }],
    [/^action.message is undefined/, { action: { type: 'escalate' } }],
    [/^maxPerRun is 0/, { maxPerRun: 0 }],
    [/^maxPerLetter is Infinity; it must be a whole number from 1 to 20/, { maxPerLetter: Infinity }],
    [/^position is 1.5/, { position: 1.5 }],
    [/^enabled is "yes"/, { enabled: 'yes' }],
    [/^A part of a triage rule is "actoin"/, { actoin: assign }],
  ])('%s', (message, change) => {
    expect(() => checkTriageRule({ ...good, ...change } as TriageRuleDraft)).toThrow(message)
  })
})
