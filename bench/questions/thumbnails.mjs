// How many thumbnails a minute, on one worker process and on two, and how much of what FFmpeg alone reaches? The limit is a
// bare loop: FFmpeg on the same files, as many at once as there are processors, writing the JPEG itself. The workers
// seek over ranged reads, skip frames that no other needs, keep the job in the ledger, and write in one step. Videos are 720p H.264 of ten seconds.
import { execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openRedrive } from '../../dist/index.js'
import { Absent } from '../harness/arena.mjs'
import { now } from '../harness/clock.mjs'
import { atLeast, noLessThan, noMoreThan } from '../harness/verdict.mjs'

const execute = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILT = `${ROOT}build/apps/thumbnails`
const WORKER = fileURLToPath(new URL('../harness/thumbnail-worker.mjs', import.meta.url))
const LIMIT_MS = 600_000
const MB = 2 ** 20
const SIDE = 320
const AT_SECONDS = '5'
const CPUS = availableParallelism()
/** As docs/operations/workers.md recommends where memory is short. */
const SMALL = '--max-semi-space-size=8'

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'thumbnails',
  title:
    'Thumbnails of 720p videos: workers against a bare FFmpeg loop over the same files (a quick run has 40 videos)',
  rounds: { full: 5, quick: 2 },
  columns: [
    { key: 'perMinute', label: 'a minute' },
    { key: 'kbRead', label: 'KB read each' },
    { key: 'fileKb', label: 'KB the file' },
    { key: 'workerMb', label: 'worker MB' },
    { key: 'ffmpegMb', label: 'one FFmpeg MB' },
  ],
  async prepare(_servers, quick) {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-'))
    const close = () => rm(folder, { recursive: true, force: true })
    try {
      const videos = await makeVideos(folder, quick ? 40 : 200)
      await compileApp()
      return { folder, ...videos, close }
    } catch (error) {
      await close()
      throw error
    }
  },
  entrants: (_quick, shared) => [
    { key: 'bare-1', label: 'bare FFmpeg, one at a time', measure: async () => bareLoop(shared, 1) },
    { key: 'bare', label: `bare FFmpeg, ${CPUS} at once`, measure: async () => bareLoop(shared, CPUS) },
    { key: 'one', label: 'one worker', measure: servers => workers(servers, shared, 1) },
    { key: 'two', label: 'two workers', measure: servers => workers(servers, shared, 2) },
    { key: 'small', label: `one worker, ${SMALL}`, measure: servers => workers(servers, shared, 1, [SMALL]) },
  ],
  verdicts: medians => {
    const limit = { label: 'bare FFmpeg', value: medians('bare', 'perMinute') }
    return [
      atLeast('one worker: ≥ 0.85 × bare FFmpeg on the same cores', medians('one', 'perMinute'), limit, 0.85),
      atLeast('two workers: ≥ 0.85 × bare FFmpeg on the same cores', medians('two', 'perMinute'), limit, 0.85),
      noLessThan('the reference of 5–10 a minute is left behind', medians('one', 'perMinute'), 10),
      noMoreThan('a worker ≤ the reference of 100 MB, Node as it comes', medians('one', 'workerMb'), 100, ' MB'),
      noMoreThan('a worker ≤ the reference of 100 MB, as recommended', medians('small', 'workerMb'), 100, ' MB'),
      noMoreThan(
        'reads a part of a file of ten seconds',
        ratio(medians('one', 'kbRead'), medians('one', 'fileKb')),
        0.75,
        ' of it',
      ),
    ]
  },
}

/** @param {number | undefined} part @param {number | undefined} whole */
const ratio = (part, whole) => (part === undefined || !whole ? undefined : part / whole)

/**
 * Two different ones, copied.
 * @param {string} folder
 * @param {number} count
 */
async function makeVideos(folder, count) {
  await mkdir(join(folder, 'videos'))
  const sources = ['testsrc2', 'mandelbrot']
  for (const [index, source] of sources.entries()) {
    const input = `${source}=s=1280x720:r=25`
    const args = ['-f', 'lavfi', '-i', input, '-t', '10', '-c:v', 'libx264', '-preset', 'veryfast', '-g', '50']
    const noise = ['-vf', 'noise=alls=3:allf=t', '-pix_fmt', 'yuv420p', join(folder, `source-${index}.mp4`)]
    await execute('ffmpeg', ['-nostdin', '-v', 'error', ...args, ...noise]).catch(error => {
      throw new Absent(`FFmpeg could not make the videos: ${error.message.split('\n')[0]}`)
    })
  }
  const keys = Array.from({ length: count }, (_, index) => `videos/${index}.mp4`)
  let bytes = 0
  for (const [index, key] of keys.entries()) {
    const source = join(folder, `source-${index % sources.length}.mp4`)
    await copyFile(source, join(folder, key))
    bytes += (await stat(source)).size
  }
  return { keys, bytes }
}

/** As it would be deployed: without a compiler in the process. */
async function compileApp() {
  const { build } = await import('esbuild')
  await build({ entryPoints: [`${ROOT}apps/thumbnails/**/*.ts`], outdir: BUILT, format: 'esm', platform: 'node' })
}

/**
 * @typedef {{ folder: string, keys: readonly string[], bytes: number }} Videos
 * @param {Videos} videos
 * @param {number} atOnce
 * @returns {Promise<import('../harness/entrants.mjs').Figures>}
 */
async function bareLoop({ folder, keys, bytes }, atOnce) {
  const waiting = [...keys]
  const output = join(folder, 'bare')
  await mkdir(output, { recursive: true })
  const startedAt = now()
  const lane = async (/** @type {number} */ number) => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      const read = ['-nostdin', '-v', 'error', '-y', '-threads', '1', '-fpsprobesize', '0', '-ss', AT_SECONDS]
      const scale = `scale=${SIDE}:${SIDE}:force_original_aspect_ratio=decrease:flags=area`
      const write = ['-frames:v', '1', '-vf', scale, '-threads', '1', '-q:v', '4', join(output, `${number}.jpg`)]
      await bareFFmpeg([...read, '-i', join(folder, key), ...write])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, number) => lane(number)))
  return { perMinute: (keys.length / (now() - startedAt)) * 60_000, fileKb: bytes / keys.length / 1024 }
}

/**
 * In a session of its own, as the worker's are: the scheduler gives each session its share, so on a machine that is not idle
 * a loop in one session would get less.
 * @param {readonly string[]} args
 */
async function bareFFmpeg(args) {
  const child = spawn('ffmpeg', args, { detached: true, stdio: 'ignore' })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`FFmpeg ended with ${code}: ${args.join(' ')}`)
}

/**
 * @param {import('../harness/arena.mjs').Servers} servers
 * @param {Videos} videos
 * @param {number} count of processes; together they decode as many at once as there are processors
 * @param {string[]} [nodeFlags]
 */
async function workers({ postgres }, { folder, keys, bytes }, count, nodeFlags = []) {
  const address = await postgres.create()
  const redrive = await openRedrive({ database: address, env: { LOG_LEVEL: 'silent' } })
  const decoders = Math.max(Math.floor(CPUS / count), 1)
  const children = Array.from({ length: count }, () =>
    fork(WORKER, [address, BUILT, folder, String(decoders)], {
      execArgv: nodeFlags,
      env: { ...process.env, NODE_ENV: 'production' },
    }),
  )
  try {
    await Promise.all(children.map(child => answer(child, 'ready')))
    const thumbnail = /** @type {any} */ ({ name: 'thumbnail', queue: 'thumbnails', rules: [], policy: {} })
    const params = { at: Number(AT_SECONDS), width: SIDE, height: SIDE }
    await redrive.enqueueMany(
      thumbnail,
      keys.map(input_key => ({ payload: { input_key, params } })),
    )
    const startedAt = now()
    const done = allCompleted(children, keys.length)
    for (const child of children) child.send('work')
    await done
    const ms = now() - startedAt
    const usages = await Promise.all(
      children.map(child => {
        child.send('usage')
        return answer(child, 'usage')
      }),
    )
    const sum = (/** @type {string} */ key) => usages.reduce((total, usage) => total + usage[key], 0)
    return {
      perMinute: (keys.length / ms) * 60_000,
      kbRead: sum('bytesRead') / keys.length / 1024,
      fileKb: bytes / keys.length / 1024,
      workerMb: Math.max(...usages.map(({ maxRss }) => maxRss)) / MB,
      ffmpegMb: Math.max(...usages.map(({ largestFFmpeg }) => largestFFmpeg)) / MB,
    }
  } finally {
    await Promise.all(children.map(ended))
    await redrive.close()
    await postgres.drop(address)
  }
}

/** @param {import('node:child_process').ChildProcess} child */
async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  if (child.connected) child.send('close')
  await exit
  clearTimeout(timer)
}

/**
 * The next message of this sort.
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} key
 * @returns {Promise<any>}
 */
function answer(child, key) {
  return new Promise((resolve, reject) => {
    child.on('message', (/** @type {any} */ message) => message[key] !== undefined && resolve(message[key]))
    child.once('exit', code => reject(new Error(`a worker ended (${code})`)))
  })
}

/** @param {readonly import('node:child_process').ChildProcess[]} children @param {number} count @returns {Promise<void>} */
function allCompleted(children, count) {
  let completed = 0
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`only ${completed} of ${count} in ${LIMIT_MS / 1000} s`)), LIMIT_MS)
    for (const child of children) {
      child.on('message', (/** @type {any} */ message) => {
        if (message.dead) reject(new Error(`a thumbnail died: ${message.dead}`))
        if (message.completed) completed += 1
        if (completed < count) return
        clearTimeout(timer)
        resolve()
      })
    }
  })
}
