// `npm start`, its program, or the `redrive` command, as a child process: what it prints, signals to it, how it ends.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const GIVE_UP_MS = 150_000

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Program {
  readonly out: string
  /** Resolves with the first match on stdout or stderr, from its start; rejects when the program ends without one. */
  prints(pattern: RegExp, stream?: 'out' | 'err'): Promise<RegExpMatchArray>
  signal(name: NodeJS.Signals): void
  /** It still runs, or anything of its group does. */
  isLeft(): boolean
  /** Reads no more of stdout, as `| head` does. */
  closeOutput(): void
  readonly ended: Promise<Ended>
}

const running = new Set<Program>()

/** Ends what a failed test left running. */
export function endAll(): void {
  for (const program of running) program.signal('SIGKILL')
}

type Variables = Readonly<Record<string, string>>

export function startProgram(
  args: readonly string[],
  env: Variables,
  entry: 'main.ts' | 'cli/main.ts' = 'main.ts',
): Program {
  return startCommand(process.execPath, ['--import', 'tsx', `src/${entry}`, ...args], env)
}

/**
 * Only the given variables and what Node needs reach it: a database of the machine must not. `inGroup`: with all that it starts, it
 * is a group of its own, as under a terminal, where a Ctrl-C reaches each of them.
 */
export function startCommand(command: string, args: readonly string[], env: Variables, inGroup = false): Program {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(command, args, {
    cwd: ROOT,
    // A busy machine is worth a warning to the program, and nothing to a test.
    env: { PATH, HOME, PORT: '0', LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: inGroup,
  })
  const kill = (signal: NodeJS.Signals | 0) =>
    inGroup && child.pid !== undefined ? killGroup(child.pid, signal) : child.kill(signal)
  const text = { out: '', err: '' }
  const looking = new Set<() => void>()
  const heard = (stream: 'out' | 'err') => (chunk: Buffer) => {
    text[stream] += chunk
    for (const look of [...looking]) look()
  }
  child.stdout.on('data', heard('out'))
  child.stderr.on('data', heard('err'))
  const ended = new Promise<Ended>(resolve => {
    child.on('close', code => {
      running.delete(program)
      resolve({ code, ...text })
    })
  })

  const program: Program = {
    get out() {
      return text.out
    },
    ended,
    signal: name => void kill(name),
    isLeft: () => kill(0),
    closeOutput: () => child.stdout.destroy(),
    prints(pattern, stream = 'out') {
      return new Promise((resolve, reject) => {
        const fail = (why: string) => {
          looking.delete(look)
          clearTimeout(timer)
          reject(new Error(`${pattern} was not printed: ${why}\n${text.out}${text.err}`))
        }
        const look = () => {
          const match = pattern.exec(text[stream])
          if (!match) return
          looking.delete(look)
          clearTimeout(timer)
          resolve(match)
        }
        const timer = setTimeout(() => fail(`waited ${GIVE_UP_MS} ms`), GIVE_UP_MS)
        looking.add(look)
        look()
        void ended.then(() => looking.has(look) && fail('the program ended'))
      })
    },
  }
  running.add(program)
  return program
}

/** Whether there was anyone to signal. */
function killGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}
