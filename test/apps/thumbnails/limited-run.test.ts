// A program that works on data of strangers is held by its limits, and nothing of it is left when it is stopped.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { findFFmpeg } from '../../../apps/thumbnails/ffmpeg.js'
import { findProgram, type Limits, limitedRun, limitsMemory } from '../../../apps/thumbnails/limited-run.js'
import { until } from '../../support/until.js'

const LIMITS: Limits = { timeMs: 60_000, cpuSeconds: 60, memoryBytes: 4 * 2 ** 30, outputBytes: 1_000_000 }
const EXHAUSTED = fileURLToPath(new URL('./support/exhausted-process.ts', import.meta.url))
const never = new AbortController().signal
const shell = (script: string, limits: Partial<Limits> = {}, signal = never) =>
  limitedRun('/bin/sh', ['-c', script], { ...LIMITS, ...limits }, signal)

/** Starts another process, tells its number in a file, and waits for it. */
async function withGrandchild() {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-run-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'number')
  // It may write no file, so the name of a folder carries the number.
  return {
    script: `sleep 1000 & mkdir '${file}-'$!; wait`,
    number: () =>
      until(
        'the process has told its number',
        async () => {
          return Number((await readdir(folder))[0]?.split('-').at(-1)) || undefined
        },
        60_000,
      ),
  }
}

const gone = (pid: number) =>
  until(
    'the process is gone',
    async () => {
      // Killed but not yet collected by its parent: as good as gone.
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tZ')
      return /^State:\s+[ZX]/m.test(status)
    },
    60_000,
  )

test('its output and its exit code', async () => {
  const run = await shell('echo out; echo err >&2; exit 3')
  expect({ ...run, output: run.output.toString() }).toEqual({
    output: 'out\n',
    words: 'err\n',
    end: { type: 'exited', code: 3 },
  })
})

test('when its time is over, it is killed with all it started', async () => {
  const { script, number } = await withGrandchild()
  const running = shell(script, { timeMs: 2_000 })
  const told = number()
  told.catch(() => {}) // on a slow machine its time may be over before it has started anything
  const pid = await Promise.race([told, running.then(() => undefined)])
  expect((await running).end).toEqual({ type: 'time' })
  if (pid !== undefined) await gone(pid)
})

test('when its job is aborted, it is killed with all it started', async () => {
  const { script, number } = await withGrandchild()
  const stop = new AbortController()
  const running = shell(script, {}, stop.signal)
  const pid = await number()
  stop.abort(new Error('not wanted any more'))
  await expect(running).rejects.toThrow('not wanted any more')
  await gone(pid)
})

test('what it prints is capped: the output by its end, the words by leaving out the middle', async () => {
  expect((await shell('yes', { outputBytes: 10_000 })).end).toEqual({ type: 'output' })
  const { words } = await shell('echo first >&2; yes word | head -c 1000000 >&2; echo last >&2')
  expect(words.length).toBeLessThan(5_000)
  expect(words).toMatch(/^first\n[\s\S]*…[\s\S]*last\n$/)
})

test('it has no environment of ours', async () => {
  process.env.REDRIVE_TEST_SECRET = 'secret'
  onTestFinished(() => void delete process.env.REDRIVE_TEST_SECRET)
  expect((await shell('env')).output.toString()).not.toContain('secret')
})

test('it can write no file, use no more processor time and no more memory', async ({ skip }) => {
  skip(!limitsMemory, 'needs prlimit of util-linux')
  const folder = await mkdtemp(join(tmpdir(), 'redrive-run-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const writing = await shell(`echo harm > '${folder}/file'`)
  expect(writing.end).not.toEqual({ type: 'exited', code: 0 })
  expect(await readFile(join(folder, 'file'), 'utf8')).toBe('')

  expect((await shell('while :; do :; done', { cpuSeconds: 1 })).end).toEqual({ type: 'killed', signal: 'SIGXCPU' })

  const starved = await shell('tail /dev/zero', { memoryBytes: 200 * 2 ** 20 })
  expect(starved.end).toMatchObject({ type: 'exited', code: 1 })
  expect(starved.words).toContain('memory exhausted')
})

test('one that cannot be started is an error like others', async () => {
  // Without prlimit, which would be started in its place.
  vi.stubEnv('PATH', '')
  vi.resetModules()
  onTestFinished(() => void vi.unstubAllEnvs())
  const bare = await import('../../../apps/thumbnails/limited-run.js')
  expect(bare.limitsMemory).toBe(false)
  await expect(bare.limitedRun('/nowhere/ffmpeg', [], LIMITS, never)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('where no file can be opened any more it is an error too, and not the end of the process', async () => {
  const node = ['ulimit -n 100; exec "$0" --import tsx "$1"', process.execPath, EXHAUSTED]
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', ...node])
  expect(stdout).toBe('EMFILE\nthen: ran\n')
})

test('a program is found as a shell would find it', () => {
  expect(findProgram('sh', '/nowhere:/bin')).toBe('/bin/sh')
  expect(findProgram('no-such-program')).toBeUndefined()
  expect(findFFmpeg({ FFMPEG_PATH: '/bin/sh' })).toEqual({ path: '/bin/sh', bundled: false })
  expect(() => findFFmpeg({ FFMPEG_PATH: '/nowhere' })).toThrow('FFMPEG_PATH is "/nowhere"; it must be')
  expect(findFFmpeg({ PATH: '' }).bundled).toBe(true)
})
