// scripts/eleven.sh, as an operator runs it: with curl, against a real server, on embedded and on Postgres. Skipped where there is
// no curl.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { serve } from '../../src/http/index.js'
import { LIBRARIES } from '../support/library.js'
import { aDeadLetter, openDesk, SECRETS } from './support/desk.js'

const SCRIPT = fileURLToPath(new URL('../../scripts/eleven.sh', import.meta.url))
const run = promisify(execFile)
const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
)

it.for(LIBRARIES)('$name', { timeout: 120_000 }, async ({ kind }, { skip }) => {
  skip(!hasCurl, 'needs curl')
  const desk = await openDesk(kind)
  for (const message of ['one', 'two']) await aDeadLetter(desk, 'curled', { message })
  const { url, close } = await serve(desk.http, { port: 0 })
  try {
    const env = { PATH: process.env.PATH, REDRIVE_URL: url, REDRIVE_TOKEN: SECRETS.admin }
    const { stdout, stderr } = await run('bash', [SCRIPT], { env })
    expect(stderr.trim().split('\n')).toHaveLength(12)
    expect(JSON.parse(stdout)).toMatchObject({ failedRuns: 0, recent: expect.any(Array) })
    const { items } = (await desk.ask('GET /dead-letter-queue?queue=curled')).body
    expect(items.map(({ status }: { status: string }) => status).sort()).toEqual(['permanently_failed', 'redriving'])
    await expect(run('bash', [SCRIPT], { env: { ...env, REDRIVE_TOKEN: 'wrong-token' } })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('UNAUTHENTICATED'),
    })
  } finally {
    await close()
  }
})
