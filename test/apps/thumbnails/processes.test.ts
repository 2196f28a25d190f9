// Two worker processes on one queue of 200 videos, and one is killed with -9 half way: 200 thumbnails, none missing, none
// broken, and nothing else in the bucket.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createThumbnailApp } from '../../../apps/thumbnails/thumbnail-app.js'
import { openRedrive } from '../../../src/index.js'
import { freshDatabase } from '../../support/databases.js'
import { silent } from '../../support/runtime.js'
import { until } from '../../support/until.js'
import { look } from './support/look.js'
import { video } from './support/media.js'
import { startS3 } from './support/s3.js'

const VIDEOS = 200
const KILLED_AFTER = VIDEOS / 4
const PATIENCE_MS = 240_000
const PROCESS = fileURLToPath(new URL('./support/worker-process.ts', import.meta.url))

test(`${VIDEOS} videos, two processes, one killed`, { timeout: PATIENCE_MS + 60_000 }, async () => {
  const { url = '' } = await freshDatabase('server')
  const s3 = await startS3()
  const tiny = [
    await video('mp4', { size: '64x48', seconds: 1 }),
    await video('webm', { size: '64x48', seconds: 1, codec: ['-c:v', 'libvpx', '-deadline', 'realtime'] }),
  ]
  const keys = Array.from({ length: VIDEOS }, (_, index) => `video-${index}`)
  await Promise.all(keys.map((key, index) => s3.put(key, tiny[index % tiny.length] as Buffer)))

  const redrive = await openRedrive({ database: url, env: {}, logger: silent })
  onTestFinished(() => redrive.close())
  const { thumbnail } = createThumbnailApp({ ...process.env, ...s3.env })
  const payloads = keys.map(input_key => ({ payload: { input_key, params: { at: 0, width: 32 } } }))
  const jobs = await redrive.enqueueMany(thumbnail, payloads)

  const env = { ...process.env, ...s3.env, DATABASE_URL: url, LOG_LEVEL: 'silent' }
  const [victim, other] = [startProcess(env), startProcess(env)]
  await Promise.all([victim.told('ready'), other.told('ready')])
  await until(
    'some are done by each',
    () => victim.count('completed') > KILLED_AFTER / 2 && other.count('completed') > 0,
    PATIENCE_MS,
  )
  await victim.kill()

  const ended = async () => {
    const states = await redrive.operator.queues.statistics()
    return states.find(({ queue }) => queue === 'thumbnails')
  }
  await until('all are done', async () => (await ended())?.completed === VIDEOS, PATIENCE_MS)

  const results = await Promise.all(
    jobs.map(async ({ id }) => {
      const { result } = (await redrive.operator.jobs.get(id)) ?? {}
      const { thumbnail_key = '' } = (result ?? {}) as { thumbnail_key?: string }
      const seen = await look(await s3.get(thumbnail_key))
      return [thumbnail_key === `processed/${id}/thumb.jpg`, seen.width, seen.height, seen.at(0.5, 0.5)].join(' ')
    }),
  )
  expect(new Set(results)).toEqual(new Set(['true 32 24 red']))
  expect((await s3.list('processed/')).sort()).toEqual(jobs.map(({ id }) => `processed/${id}/thumb.jpg`).sort())
  expect(await s3.uploads()).toEqual([])
  expect((await redrive.operator.deadLetters.list({})).items).toEqual([])
  console.log(`killed after ${victim.count('completed')} of its own, with ${victim.running()} running`)
})

interface WorkerProcess {
  /** Waits until it has told this line. */
  told(line: string): Promise<void>
  count(word: string): number
  /** Jobs that it began and did not end. */
  running(): number
  kill(): Promise<void>
}

function startProcess(env: NodeJS.ProcessEnv): WorkerProcess {
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(
    process.execPath,
    ['--import', 'tsx', PROCESS],
    { env, stdio: ['pipe', 'pipe', 'pipe'] },
  )
  const lines: string[] = []
  let words = ''
  child.stdin.on('error', () => {})
  child.stderr.on('data', text => {
    words = `${words}${text}`.slice(-2_000)
  })
  createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'close')
  }
  onTestFinished(kill)
  return {
    told: line =>
      until(
        `a worker told "${line}"`,
        () => {
          if (child.exitCode !== null) throw new Error(`The worker ended: ${words}`)
          return lines.includes(line)
        },
        PATIENCE_MS,
      ).then(() => {}),
    count: word => lines.filter(line => line.startsWith(`${word} `)).length,
    running: () =>
      lines.filter(line => line.startsWith('started ')).length -
      lines.filter(line => line.startsWith('completed ')).length,
    kill,
  }
}
