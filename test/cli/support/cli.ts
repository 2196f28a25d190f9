// The command line against a real server: called in this process, with its streams caught, or as a process of its own.
import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import type { Host } from '../../../src/cli/cli.js'
import { interruption } from '../../../src/cli/interrupt.js'
import { runCli } from '../../../src/cli/program.js'
import { type Clock, systemClock } from '../../../src/domain/clock.js'
import { type Served, serve } from '../../../src/http/index.js'
import { type Desk, openDesk, SECRETS } from '../../http/support/desk.js'
import type { LibraryKind } from '../../support/library.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Given {
  /** Beside REDRIVE_URL and REDRIVE_TOKEN; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly input?: string
  /** So wide a terminal; otherwise there is none. */
  readonly columns?: number
  readonly clock?: Clock
  readonly interrupt?: () => AbortSignal
  readonly onError?: (text: string) => void
}

export interface Terminal extends Desk {
  readonly served: Served
  /** What a process is given to reach it. */
  readonly env: Readonly<Record<string, string>>
  /** `redrive …`, in this process. */
  run(args: readonly string[], given?: Given): Promise<Ended>
}

const servers = new Set<Served>()
afterAll(async () => {
  for (const served of servers) await served.close()
})

export async function openTerminal(kind: LibraryKind): Promise<Terminal> {
  const desk = await openDesk(kind, { throttle: { failures: 1_000_000 } })
  const served = await serve(desk.http, { port: 0 })
  servers.add(served)
  const env = { REDRIVE_URL: served.url, REDRIVE_TOKEN: SECRETS.admin }
  return { ...desk, served, env, run: (args, given) => run(args, { ...given, env: { ...env, ...given?.env } }) }
}

export async function run(args: readonly string[], given: Given = {}): Promise<Ended> {
  const { env = {}, input = '', columns, clock = systemClock, interrupt, onError } = given
  const written = { out: '', err: '' }
  const stream = (name: 'out' | 'err') => ({
    ...(columns !== undefined && { isTTY: true, columns }),
    write: (text: string) => {
      written[name] += text
      if (name === 'err') onError?.(text)
    },
  })
  const host: Host = {
    env,
    stdin: Readable.from([input]),
    stdout: stream('out'),
    stderr: stream('err'),
    clock,
    version: '1.2.3',
    interrupt: interrupt ?? interruption({ on: () => {}, exit: () => undefined as never }),
  }
  const code = await runCli(args, host)
  return { code, ...written }
}

export interface Process {
  readonly ended: Promise<Ended>
  signal(name: NodeJS.Signals): void
  /** Resolves when it has printed this; rejects when the process ends without. */
  says(text: string): Promise<void>
  types(text: string): void
  /** Reads no more, as `| head` does. */
  closeOutput(): void
}

const children = new Set<ReturnType<typeof spawn>>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** As a person starts it: only the given variables and what Node needs reach it. */
export const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Process =>
  processOf([process.execPath, '--import', 'tsx', 'src/cli/main.ts', ...args], env)

/** On a terminal of so many columns, made by `script` of util-linux: stdout and stderr are one. The words need no quoting. */
export const startOnTerminal = (
  args: readonly string[],
  columns: number,
  env: Readonly<Record<string, string>>,
): Process =>
  processOf(
    ['script', '-qec', `stty cols ${columns}; "$NODE" --import tsx src/cli/main.ts ${args.join(' ')}`, '/dev/null'],
    { ...env, NODE: process.execPath },
  )

function processOf([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Process {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(command, args, { cwd: ROOT, env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  children.add(child)
  const text = { out: '', err: '' }
  let look = () => {}
  child.stdout.on('data', chunk => {
    text.out += chunk
    look()
  })
  child.stderr.on('data', chunk => {
    text.err += chunk
    look()
  })
  const ended = new Promise<Ended>(resolve => {
    child.on('close', code => {
      children.delete(child)
      resolve({ code, ...text })
    })
  })
  return {
    ended,
    signal: name => void child.kill(name),
    types: typed => void child.stdin.write(typed),
    closeOutput: () => child.stdout.destroy(),
    says: wanted =>
      new Promise((resolve, reject) => {
        look = () => (text.err.includes(wanted) || text.out.includes(wanted)) && resolve()
        look()
        void ended.then(({ out, err }) => reject(new Error(`ended without saying it: ${out}${err}`)))
      }),
  }
}
