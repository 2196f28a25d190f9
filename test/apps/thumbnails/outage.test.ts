// S3 goes away: the breaker opens and holds the jobs, nothing dies, and when it is back all of them complete. A minute of
// outage is played in seconds: the breaker is open for 300 ms at first and a second at most, instead of 5 s and a minute.
// With REAL_MINUTE=1 S3 is away for a real one, with the settings that the worker comes with.
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fixed } from '../../../src/index.js'
import { gate } from '../../support/gate.js'
import { image, video } from './support/media.js'
import { startS3 } from './support/s3.js'
import { openWorker } from './support/worker.js'

const JOBS = 40
const REAL_MINUTE = process.env.REAL_MINUTE === '1'
const FAST = {
  retry: { backoff: fixed({ delayMs: 200 }) },
  services: { s3: { breaker: { openMs: 300, openMaxMs: 1_000, releaseMs: 0 } } },
}

test('S3 goes away and comes back', { timeout: REAL_MINUTE ? 600_000 : 180_000 }, async () => {
  const s3 = await startS3()
  const worker = await openWorker(s3.env, REAL_MINUTE ? {} : FAST)
  const { redrive } = worker
  await s3.put('video.mp4', await video('mp4', { size: '64x48' }))
  await s3.put('picture.png', await image('png'))
  let held = 0
  let opened = 0
  const openedThrice = gate()
  const closed = gate()
  redrive.on('job.held', () => {
    held += 1
  })
  redrive.on('breaker.changed', ({ to }) => {
    if (to === 'open') opened += 1
    if (opened === 3) openedThrice.open()
    if (to === 'closed') closed.open()
  })

  await worker.made('video.mp4')
  await s3.leave()
  const keys = Array.from({ length: JOBS }, (_, index) => (index % 4 === 0 ? 'video.mp4' : 'picture.png'))
  const ids = await Promise.all(keys.map(key => worker.enqueue(key, { width: 32 })))
  if (REAL_MINUTE) await setTimeout(60_000)
  else await openedThrice.passed // it was looked at twice since, and S3 was still away

  const during = await redrive.operator.services.get('s3')
  expect(['open', 'half_open']).toContain(during.state)
  expect((await redrive.operator.deadLetters.list({})).items).toEqual([])

  await s3.comeBack()
  await closed.passed
  const results = await Promise.all(ids.map(id => worker.result(id)))
  expect(new Set(results.map(({ width, height }) => `${width}x${height}`))).toEqual(new Set(['32x24']))
  expect(await s3.list('processed/')).toHaveLength(JOBS + 1)
  console.log(`the breaker opened ${opened} times; ${held} times a job was held`)
})
