// A process of its own that works on rate limited jobs and tells when each starts: node --import tsx rated-worker.ts <url>.
// One line a start: the job's name, its tenant, the time in milliseconds, and how often it was held before.
import { openRedrive } from '../../../src/index.js'
import { ratedJobs } from './rated-jobs.js'

const redrive = await openRedrive({ database: process.argv[2] as string, env: { LOG_LEVEL: 'warn' } })
const jobs = ratedJobs((_, { job }) => {
  const at = performance.timeOrigin + performance.now()
  process.stdout.write(`${job.name} ${job.tenant ?? '-'} ${at} ${job.holds}\n`)
})
const worker = redrive.work(Object.values(jobs), { concurrency: 20 })
await worker.ready
process.stdout.write('ready\n')
process.stdin.on('close', () => process.exit()) // nobody is there any more to listen
process.stdin.resume()
