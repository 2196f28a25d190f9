// A process of its own that calls two services over HTTP, one of which will be down for a while:
// node --import tsx outage-worker.ts <config as JSON>.
import { openRedrive } from '../../../src/index.js'
import { type OutageConfig, outageJobs } from './outage-jobs.js'

const config = JSON.parse(process.argv[2] as string) as OutageConfig
const { database, services } = config
const redrive = await openRedrive({ database, services, env: { LOG_LEVEL: 'error' } })
redrive.on('job.dead', ({ job }) => void process.stdout.write(`dead ${job.name}\n`))
redrive.on('breaker.changed', ({ service, to }) => void process.stdout.write(`breaker ${service} ${to}\n`))
const worker = redrive.work(outageJobs(config.address), { concurrency: 10 })
await worker.ready
process.stdout.write('ready\n')
process.stdin.on('close', () => process.exit()) // nobody is there any more to listen
process.stdin.resume()
