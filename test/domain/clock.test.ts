// What is to happen soon happens in one turn, in its order, and whatever one of them does.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/domain/clock.js'

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

describe('the system clock, soon', () => {
  it('calls what gathered in one turn together, in its order', async () => {
    const called: string[] = []
    for (const name of ['a', 'b', 'c']) systemClock.soon(() => void called.push(name))
    void Promise.resolve().then(() => called.push('what was promised before'))
    expect(called).toEqual([])
    await turn()
    expect(called).toEqual(['what was promised before', 'a', 'b', 'c'])
  })

  it('leaves what is added meanwhile for another turn, so that others have theirs', async () => {
    const called: string[] = []
    systemClock.soon(() => {
      called.push('first')
      systemClock.soon(() => void called.push('added by the first'))
    })
    systemClock.soon(() => void called.push('second'))
    setImmediate(() => void called.push('somebody else'))
    await turn()
    expect(called).toEqual(['first', 'second', 'somebody else'])
    await turn()
    expect(called.at(-1)).toBe('added by the first')
  })

  it('calls the others although one throws', () => {
    const clock = fileURLToPath(new URL('../../src/domain/clock.ts', import.meta.url))
    const story = `
      import { systemClock } from ${JSON.stringify(clock)}
      process.on('uncaughtException', error => console.log(error.message))
      const say = word => systemClock.soon(() => console.log(word))
      say('before')
      systemClock.soon(() => { say('added'); throw new Error('thrown') })
      say('after')`
    const args = ['--import', 'tsx', '--input-type=module', '--eval', story]
    const printed = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 })
    expect(printed.trim().split('\n')).toEqual(['before', 'thrown', 'after', 'added'])
  })

  it('begins at the bottom of the stack: errors show nothing of how their handler was called', async () => {
    const frames = await new Promise<string[]>(resolve => {
      for (const first of [true, false]) {
        systemClock.soon(() => {
          void Promise.resolve().then(() => {
            if (first) resolve((new Error('here').stack ?? '').split('\n').slice(1))
          })
        })
      }
    })
    expect(frames.filter(frame => frame.includes('processImmediate'))).toEqual([])
  })
})
