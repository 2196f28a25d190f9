// Runs another program on data of strangers: no shell, no inherited environment, in a process group of its own that is
// killed whole, with limits of time, processor time, memory and output. It can write no file. What it prints is capped.
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

export interface Limits {
  readonly timeMs: number
  readonly cpuSeconds: number
  readonly memoryBytes: number
  readonly outputBytes: number
}

export interface Run {
  readonly output: Buffer
  /** What it said on stderr: the beginning and the end of it. */
  readonly words: string
  readonly end:
    | { readonly type: 'exited'; readonly code: number }
    | { readonly type: 'killed'; readonly signal: string }
    | { readonly type: 'time' | 'output' }
}

const WORDS_KEPT = 4_000
const OPEN_FILES = 64
/** After its processor time is used up it is asked to end; so much later it has to. */
const CPU_GRACE_SECONDS = 5

export async function limitedRun(
  program: string,
  args: readonly string[],
  limits: Limits,
  signal: AbortSignal,
): Promise<Run> {
  signal.throwIfAborted()
  const [command = program, ...rest] = [...limiter(limits), program, ...args]
  const child = spawn(command, rest, { detached: true, env: {}, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<Run['end']>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, by) =>
      resolve(by === null ? { type: 'exited', code: code ?? 1 } : { type: 'killed', signal: by }),
    )
  })
  // Where there are no file descriptors left there is no process and there are no pipes.
  if (child.pid === undefined) await exited

  let end: Run['end'] | undefined
  const kill = () => {
    // The group, not the process: whatever it started ends with it.
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        child.kill('SIGKILL')
      }
  }
  const stopFor = (type: 'time' | 'output') => {
    end ??= { type }
    kill()
  }
  const timer = setTimeout(() => stopFor('time'), limits.timeMs)
  signal.addEventListener('abort', kill, { once: true })

  const output: Buffer[] = []
  let bytes = 0
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limits.outputBytes) stopFor('output')
    else output.push(chunk)
  })
  const words = new Words()
  child.stderr.on('data', (chunk: Buffer) => words.add(chunk.toString('utf8')))

  try {
    const exit = await exited
    signal.throwIfAborted()
    return { output: Buffer.concat(output), words: words.text, end: end ?? exit }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', kill)
  }
}

/** The beginning names the cause, the end the consequence; what lies between may be megabytes. */
class Words {
  #start = ''
  #end = ''

  add(text: string): void {
    const room = WORDS_KEPT / 2 - this.#start.length
    this.#start += text.slice(0, Math.max(room, 0))
    this.#end = (this.#end + text.slice(Math.max(room, 0))).slice(-WORDS_KEPT / 2)
  }

  get text(): string {
    const between = this.#end.length >= WORDS_KEPT / 2 ? '\n…\n' : ''
    return `${this.#start}${between}${this.#end}`
  }
}

/** `prlimit` of util-linux sets the limits and becomes the program. Where there is none, time and output still hold. */
function limiter({ memoryBytes, cpuSeconds }: Limits): string[] {
  if (PRLIMIT === undefined) return []
  return [
    PRLIMIT,
    `--as=${memoryBytes}`,
    `--cpu=${cpuSeconds}:${cpuSeconds + CPU_GRACE_SECONDS}`,
    `--nofile=${OPEN_FILES}`,
    '--fsize=0',
    '--core=0',
    '--',
  ]
}

/** The file that a command's name means, found as a shell would, without one. */
export function findProgram(name: string, path = process.env.PATH ?? ''): string | undefined {
  const files = path.split(delimiter).filter(Boolean)
  return files.map(folder => join(folder, name)).find(runnable)
}

export function runnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const PRLIMIT = process.platform === 'linux' ? findProgram('prlimit') : undefined

/** Whether memory and processor time can be limited on this machine. */
export const limitsMemory = PRLIMIT !== undefined
