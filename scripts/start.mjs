// `npm start`: from a clean clone to the running program. The program runs in this very process, so a Ctrl-C
// reaches it directly and its exit code is ours.
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { buildIfStale, checkNode, installDependencies } from './prepare.mjs'
import { endWithParent, root } from './run.mjs'

/** The workers that come with Redrive. */
const APPS = ['apps/thumbnails/jobs.ts', 'apps/providers/jobs.ts']

checkNode()
endWithParent()
if (!((await installDependencies()) && (await buildIfStale()))) process.exit(1)

const main = `${root}dist/main.js`
const apps = APPS.map(path => root + path).filter(path => existsSync(path))
process.argv = [process.execPath, main, ...apps, ...process.argv.slice(2)]
// The apps are TypeScript and import `redrive` by its name: that has to be what is running, not its source.
process.env.TSX_TSCONFIG_PATH ??= `${root}scripts/tsconfig.json`
process.setSourceMapsEnabled(true)
await import(pathToFileURL(main).href)
