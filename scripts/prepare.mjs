// What `npm start` and `npm test` need before anything else: the right Node, the dependencies, a fresh build.
// Everything here runs on a clean clone, so it may import nothing but Node.
import { readdirSync, statSync } from 'node:fs'
import { build } from './build.mjs'
import { root, run } from './run.mjs'

const OLDEST_NODE = [20, 19]

/** Ends the process with one line when this Node is too old to run Redrive. */
export function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  console.error(`Redrive needs Node ${OLDEST_NODE.join('.')} or newer; this is Node ${process.versions.node}.`)
  process.exit(1)
}

/** @returns {boolean} whether the locked dependencies are there, and the lockfile did not change since they were installed. */
export const dependenciesAreThere = () =>
  modifiedMs('node_modules/.package-lock.json') >= modifiedMs('package-lock.json')

/** @returns {Promise<boolean>} whether the locked dependencies are there, installed now if they were not. */
export async function installDependencies() {
  if (dependenciesAreThere()) return true
  console.log('Installing dependencies (npm ci)…')
  // NODE_ENV=production would leave out the compiler, which the build needs.
  const args = ['ci', '--include=dev', '--loglevel=error']
  const npm = process.env.npm_execpath
  const code = npm?.endsWith('npm-cli.js')
    ? await run(process.execPath, [npm, ...args], { quiet: true })
    : await run('npm', args, { quiet: true, shell: process.platform === 'win32' })
  if (code !== 0) console.error('The dependencies could not be installed; npm says why above.')
  return code === 0
}

/** @returns {Promise<boolean>} whether dist/ holds the program of src/, built now if it was out of date. */
export async function buildIfStale() {
  const sources = ['src', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json']
  if (modifiedMs('dist') >= Math.max(...sources.map(newestMs))) return true
  console.log('Building…')
  const built = await build()
  if (!built) console.error('The build failed; the compiler says why above.')
  return built
}

/** @param {string} path below the root; a missing file is older than any other. */
const modifiedMs = path => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/**
 * The newest time of a file or of anything below a folder. Folders count: a deletion touches only them.
 * @param {string} path
 * @returns {number}
 */
function newestMs(path) {
  const stat = statSync(root + path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0
  return Math.max(stat.mtimeMs, ...readdirSync(root + path).map(name => newestMs(`${path}/${name}`)))
}
