// What `npm start` runs: `redrive serve`, with the modules that it is given before its options.
import { runProcess } from './cli/process.js'

await runProcess(['serve', ...process.argv.slice(2)])
