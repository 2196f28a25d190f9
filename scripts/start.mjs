// `npm start`: from a clean clone to the running program. The program runs in this very process, so a Ctrl-C
// reaches it directly and its exit code is ours.
import { pathToFileURL } from 'node:url'
import { buildIfStale, checkNode, installDependencies } from './prepare.mjs'
import { endWithParent, root } from './run.mjs'

checkNode()
endWithParent()
if (!((await installDependencies()) && (await buildIfStale()))) process.exit(1)

const main = `${root}dist/main.js`
process.argv[1] = main
process.setSourceMapsEnabled(true)
await import(pathToFileURL(main).href)
