// Answers that are shared for a moment: how old they get, who waits, and what a change does to them.
import { describe, expect, it } from 'vitest'
import { Moment } from '../../src/http/moment.js'
import { manualClock } from '../../src/testing/manual-clock.js'

/** A question whose answers are numbered, each of which takes so long. */
function asking(tookMs = 0) {
  const clock = manualClock()
  const moment = new Moment(clock)
  let asked = 0
  const make = () => {
    asked += 1
    const number = asked
    return new Promise<number>(resolve => clock.timer(tookMs, () => resolve(number)))
  }
  const ask = () => moment.cached('count', make)
  const answered = async () => {
    const answer = ask()
    await clock.advance(tookMs)
    return answer
  }
  return { clock, moment, ask, answered, asked: () => asked }
}

describe('answers of a moment', () => {
  it('are shared by all who ask within a second, even while the first one waits', async () => {
    const desk = asking(5)
    const both = Promise.all([desk.ask(), desk.ask()])
    await desk.clock.advance(900)
    expect(await both).toEqual([1, 1])
    expect(await desk.ask()).toBe(1)
    await desk.clock.advance(200)
    expect(await desk.answered()).toBe(2)
  })

  it('that cannot even be asked for fail as any others do, and are asked for again', async () => {
    const moment = new Moment(manualClock())
    const closed = () => {
      throw new Error('closed')
    }
    const both = Promise.all([(async () => moment.cached('a', closed))(), moment.cached('b', closed)])
    await expect(both).rejects.toThrow('closed')
    expect(await moment.cached('a', async () => 1)).toBe(1)
  })

  it('are forgotten with a change', async () => {
    const desk = asking()
    await desk.answered()
    desk.moment.forget()
    expect(await desk.answered()).toBe(2)
  })

  it('that took long are kept for twenty times as long, then given once more while the next is found out', async () => {
    const desk = asking(100)
    expect(await desk.answered()).toBe(1)
    await desk.clock.advance(1_850)
    expect(await desk.ask()).toBe(1)
    expect(desk.asked()).toBe(1)
    await desk.clock.advance(100)
    expect([await desk.ask(), await desk.ask()]).toEqual([1, 1])
    expect(desk.asked()).toBe(2)
    await desk.clock.advance(100)
    expect(await desk.ask()).toBe(2)
  })

  it('that took long are not given when they are old', async () => {
    const desk = asking(100)
    await desk.answered()
    await desk.clock.advance(10_000)
    expect(await desk.answered()).toBe(2)
  })

  it('that were being found out when something changed are not kept', async () => {
    const desk = asking(100)
    await desk.answered()
    await desk.clock.advance(2_000)
    expect(await desk.ask()).toBe(1)
    desk.moment.forget()
    await desk.clock.advance(100)
    expect(await desk.answered()).toBe(3)
  })

  it('are not kept when there are none: a failure is asked again', async () => {
    const moment = new Moment(manualClock())
    await expect(moment.cached('count', () => Promise.reject(new Error('down')))).rejects.toThrow('down')
    expect(await moment.cached('count', async () => 1)).toBe(1)
  })

  it('are bounded in number', async () => {
    const moment = new Moment(manualClock())
    for (let nth = 0; nth <= 500; nth += 1) await moment.cached(String(nth), async () => 'first')
    expect(await moment.cached('500', async () => 'again')).toBe('first')
    expect(await moment.cached('0', async () => 'again')).toBe('again')
  })
})
