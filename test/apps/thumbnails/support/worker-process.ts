// The thumbnail worker in a process of its own, as `redrive work` would run it; it tells what ends in it, line by line:
// node --import tsx worker-process.ts, with its settings in the environment.
import { writeSync } from 'node:fs'
import { createThumbnailApp } from '../../../../apps/thumbnails/thumbnail-app.js'
import { openRedrive } from '../../../../src/index.js'

const { DATABASE_URL = '', LEASE_MS = '5000' } = process.env
const tell = (line: string) => writeSync(1, `${line}\n`)
const log = { debug() {}, info() {}, warn() {}, error() {} }

const redrive = await openRedrive({ database: DATABASE_URL, leaseMs: Number(LEASE_MS), pollMs: 200, logger: log })
redrive.on('job.started', ({ job }) => tell(`started ${job.id}`))
redrive.on('job.completed', ({ job }) => tell(`completed ${job.id}`))
redrive.on('job.dead', ({ job }) => tell(`dead ${job.id}`))
const app = createThumbnailApp(process.env)
await app.setup({ redrive, env: process.env, log })
await redrive.work([app.thumbnail]).ready
tell('ready')
process.stdin.resume().on('close', () => process.exit()) // its test is gone
