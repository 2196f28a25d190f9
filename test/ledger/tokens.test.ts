// Tokens and Idempotency-Keys as the ledger keeps them, on every database, with time by hand.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { forgetKeys, giveBackKey, keepAnswer, takeKey } from '../../src/ledger/idempotency-key.js'
import { addToken, allTokens, removeToken } from '../../src/ledger/token.js'
import { DATABASES } from '../support/databases.js'

const NOW = '2026-01-01T00:00:00.000Z'
const HASH = 'a'.repeat(64)
const request = { token: 'ci', key: 'k', request: 'hash of a request' }

const answered = async (db: Database, key: string, keptMs: number) => {
  await takeKey(db, { ...request, key }, 1_000)
  await keepAnswer(db, { ...request, key }, { status: 201, body: '{}' }, keptMs)
}

const keys = async (db: Database) =>
  (await db.query<{ key: string }>(sql`SELECT key FROM redrive.idempotency_key ORDER BY key`)).map(row => row.key)

describe.each(DATABASES)('$name', ({ open }) => {
  it('a name, and a secret, belong to one token', async () => {
    const { db } = await open({ now: NOW })
    const token = { name: 'ci', hash: HASH, scopes: ['read', 'payload'] as const, createdBy: 'root' }
    expect(await addToken(db, token)).toEqual({ ...token, createdAt: new Date(NOW) })
    expect(await addToken(db, { ...token, hash: 'b'.repeat(64) })).toBeUndefined()
    expect(await addToken(db, { ...token, name: 'other' })).toBeUndefined()
    expect(await allTokens(db)).toMatchObject([{ name: 'ci', scopes: ['read', 'payload'] }])
    expect(await removeToken(db, 'ci')).toMatchObject({ name: 'ci' })
    expect(await removeToken(db, 'ci')).toBeUndefined()
    await expect(addToken(db, { ...token, hash: 'the secret itself' })).rejects.toThrow(/token_hash/)
  })

  it('a key is held by one, answered to all, and free again after its time', async () => {
    const { db, clock } = await open({ now: NOW })
    expect(await takeKey(db, request, 1_000)).toEqual({ state: 'mine' })
    expect(await takeKey(db, request, 1_000)).toEqual({ state: 'under way' })
    await keepAnswer(db, request, { status: 201, body: '{}' }, 5_000)
    expect(await takeKey(db, request, 1_000)).toEqual({ state: 'answered', answer: { status: 201, body: '{}' } })
    expect(await takeKey(db, { ...request, request: 'another' }, 1_000)).toEqual({ state: 'other request' })
    expect(await takeKey(db, { ...request, token: 'other' }, 1_000)).toEqual({ state: 'mine' })
    clock.advance(5_000)
    expect(await takeKey(db, { ...request, request: 'another' }, 1_000)).toEqual({ state: 'mine' })
  })

  it('one that could not be carried out, or whose process died, can be taken again', async () => {
    const { db, clock } = await open({ now: NOW })
    await takeKey(db, request, 1_000)
    await giveBackKey(db, request)
    expect(await takeKey(db, request, 1_000)).toEqual({ state: 'mine' })
    clock.advance(1_000)
    expect(await takeKey(db, request, 1_000)).toEqual({ state: 'mine' })
  })

  it('those past their time are forgotten, and those beyond as many as there may be', async () => {
    const { db, clock } = await open({ now: NOW })
    for (const key of ['a', 'b', 'c']) {
      await answered(db, key, 1_000)
      clock.advance(100)
    }
    await forgetKeys(db, 2, 10)
    expect(await keys(db)).toEqual(['b', 'c'])
    clock.advance(850)
    await forgetKeys(db, 2, 10)
    expect(await keys(db)).toEqual(['c'])
  })

  it('however many there are, what is under way is not forgotten before its time', async () => {
    const { db, clock } = await open({ now: NOW })
    for (const key of ['a', 'b', 'c']) await takeKey(db, { ...request, key }, 1_000)
    for (const key of ['d', 'e', 'f']) {
      clock.advance(1)
      await answered(db, key, 5_000)
    }
    await forgetKeys(db, 1, 10)
    expect(await keys(db), 'and one answer, the last').toEqual(['a', 'b', 'c', 'f'])
    expect(await takeKey(db, { ...request, key: 'a' }, 1_000)).toEqual({ state: 'under way' })
    await forgetKeys(db, 0, 10)
    expect(await keys(db)).toEqual(['a', 'b', 'c'])
    clock.advance(1_000)
    await forgetKeys(db, 10, 10)
    expect(await keys(db), 'their processes died').toEqual([])
  })
})
