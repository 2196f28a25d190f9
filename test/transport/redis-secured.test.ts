// A Redis with a password and TLS, on a private server: both are in the URL, and the password is nowhere else.
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { aMessage, hand, isInstalled, privateRedis, redisScene } from '../support/redis.js'
import { until } from '../support/until.js'

const SECRET = 'correct-horse'

test('rediss:// with a user and a password', async context => {
  if (!isInstalled('redis-server')) return context.skip('needs redis-server: it is not installed here')
  const folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
    ...subject,
  ])
  if (made.status !== 0) return context.skip('needs openssl to make a certificate: it is not installed here')
  const ca = await readFile(cert, 'utf8')
  const tls = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert, '--tls-auth-clients', 'no']
  const users = ['--user', 'default', 'off', '--user', 'worker', 'on', `>${SECRET}`, '~*', '+@all']
  const server = await privateRedis('redis-server', [...tls, ...users], { tls: true, user: `worker:${SECRET}`, ca })
  onTestFinished(() => server.stop())
  const { broker, errors } = await redisScene({ url: server.url, tls: { ca } })

  const redis = broker({ tls: { ca } })
  await redis.publish([aMessage({ body: 'secured' })])
  const { consumer, take } = hand(redis)
  const [delivery] = await take(1)
  expect(delivery?.body).toBe('secured')
  expect(await consumer.acknowledge(delivery ? [delivery] : [])).toEqual([])

  const wrong = server.url.replace(SECRET, 'battery-staple')
  const refused = broker({ url: wrong, tls: { ca }, timeoutMs: 500 })
  const failed = await refused.publish([aMessage()]).catch(error => error)
  expect(failed).toMatchObject({ code: 'BROKER_UNAVAILABLE', details: { taken: 'none' } })
  await until('it said why', () => errors.length > 0)
  expect(inspect([failed, errors], { depth: 10 })).toContain('WRONGPASS')
  expect(inspect([failed, errors], { depth: 10 })).not.toContain('battery-staple')
  const stranger = broker({ timeoutMs: 500 })
  const untrusted = await stranger.publish([aMessage()]).catch(error => error)
  expect(untrusted.message).toContain('self-signed certificate')
})
