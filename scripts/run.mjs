// Runs one child process in this terminal and waits for it. A signal that reaches us is passed on to the
// child, so that a Ctrl-C ends the child first and the caller can still tidy up after it.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The folder of package.json. */
export const root = fileURLToPath(new URL('..', import.meta.url))

// Tools colour their output even where nobody sees colours, such as a CI log.
if (!process.stdout.isTTY && !process.env.FORCE_COLOR) process.env.NO_COLOR ??= '1'

/** How long a child may take to end after it was told to. */
const GRACE_MS = 15_000

const PARENT_CHECK_MS = 250

/** The exit code a shell reports for a process that a signal ended. */
const EXIT_OF_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set()

/** @type {number | undefined} */
let interruptedWith

/** The exit code to end with when a person or a supervisor stopped us; undefined while nobody did. */
export const interrupted = () => interruptedWith

/** From here on a signal to end stops the running child, not this process: the caller ends by itself. */
export function passSignalsOn() {
  for (const signal of /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGTERM'])) {
    process.on(signal, () => {
      if (interruptedWith !== undefined) return // npm repeats what the terminal already sent
      interruptedWith = EXIT_OF_SIGNAL[signal]
      for (const child of children) {
        child.kill(signal)
        setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref()
      }
    })
  }
}

/**
 * npm runs a script in a shell, and a SIGTERM to npm ends that shell without reaching us: we would run on with
 * nobody to stop us. A parent that is gone counts as that SIGTERM.
 */
export function endWithParent() {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, PARENT_CHECK_MS)
  watch.unref()
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions & { quiet?: boolean }} [options] `quiet` shows the
 *   child's output only when it fails.
 * @returns {Promise<number>} its exit code; 1 when it could not be started or a signal ended it.
 */
export function run(command, args, { quiet = false, ...options } = {}) {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd: root, stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit', ...options })
    /** @type {Buffer[]} */
    const output = []
    child.stdout?.on('data', chunk => output.push(chunk))
    child.stderr?.on('data', chunk => output.push(chunk))
    children.add(child)
    child.on('error', error => {
      children.delete(child)
      console.error(`${command} could not be started: ${error.message}`)
      resolve(1)
    })
    child.on('close', code => {
      children.delete(child)
      if (code !== 0 && interruptedWith === undefined) process.stderr.write(Buffer.concat(output))
      resolve(code ?? 1)
    })
  })
}

/**
 * Runs a tool of node_modules under this Node, so that neither PATH nor a shell has a say in it.
 * @param {string} file path inside node_modules
 * @param {readonly string[]} args
 * @param {Parameters<typeof run>[2]} [options]
 */
export const runTool = (file, args, options) => run(process.execPath, [`${root}node_modules/${file}`, ...args], options)
