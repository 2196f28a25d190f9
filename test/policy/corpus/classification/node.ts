// Errors of Node and the operating system, provoked for real where that needs no privilege.
import { spawn } from 'node:child_process'
import { createDecipheriv, randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { mkdtemp, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { gunzip, gzipSync } from 'node:zlib'
import { withHttpServer } from '../servers/http.js'
import { closedPort, withSocketServer } from '../servers/lines.js'
import { caught, type Family, like, shape } from './shape.js'

const gunzipped = promisify(gunzip)

const errorOf = (emitter: { once(event: 'error', listener: (error: unknown) => void): unknown }): Promise<unknown> =>
  new Promise(done => emitter.once('error', done))

/** As libuv names what it was doing: `EMFILE: too many open files, open '/tmp/x'`. */
const system = (code: string, text: string, syscall: string) =>
  like('Error', `${code}: ${text}, ${syscall}`, { errno: -1, code, syscall })

export const node: Family = {
  family: 'Node and the operating system',
  shapes: [
    shape('a connection to a closed port', 'network', async () => errorOf(connect(await closedPort(), '127.0.0.1'))),
    shape('a connection to every address of localhost', 'network', async () =>
      errorOf(connect({ port: await closedPort(), host: 'localhost', autoSelectFamily: true })),
    ),
    shape('a name that does not exist', 'network', () => caught(() => lookup('nobody.invalid'))),
    shape('an HTTP request cut off', 'network', () =>
      withHttpServer(url => errorOf(request(`${url}/cut`).end() as never)),
    ),
    shape('an HTTP answer that is not HTTP', 'network', () =>
      withHttpServer(url => errorOf(request(`${url}/garbage`).end() as never)),
    ),
    shape('HTTP/2 with somebody who hangs up', 'network', () =>
      like('Error', 'The pending stream has been canceled (caused by: )', { code: 'ERR_HTTP2_STREAM_CANCEL' }),
    ),
    shape('TLS with somebody who does not speak it', 'network', () =>
      withSocketServer(
        socket => socket.end('220 plain text here, and nothing else\r\n'),
        port => errorOf(connectTls({ port, host: '127.0.0.1' })),
      ),
    ),
    shape('a write after the other side went', 'network', () => system('EPIPE', 'broken pipe', 'write')),
    shape('an answer that does not come', 'network', () =>
      like('Error', 'connect ETIMEDOUT 10.1.2.3:443', { errno: -110, code: 'ETIMEDOUT', syscall: 'connect' }),
    ),
    shape('a reset connection', 'network', () => like('Error', 'read ECONNRESET', { code: 'ECONNRESET' })),
    shape('no route', 'network', () => like('Error', 'connect EHOSTUNREACH 10.0.0.9:80', { code: 'EHOSTUNREACH' })),
    shape('no network', 'network', () => like('Error', 'connect ENETUNREACH 10.0.0.9:80', { code: 'ENETUNREACH' })),
    shape('a resolver that gives up', 'network', () => like('Error', 'queryA ETIMEOUT a.test', { code: 'ETIMEOUT' })),
    shape('a resolver in trouble', 'network', () => like('Error', 'queryA ESERVFAIL a.test', { code: 'ESERVFAIL' })),
    shape('a resolver that refuses', 'network', () => like('Error', 'queryA EREFUSED a.test', { code: 'EREFUSED' })),
    shape('a name without such a record', 'network', () =>
      like('Error', 'queryMx ENODATA a.test', { code: 'ENODATA' }),
    ),
    shape('a stream that ended early', 'network', () =>
      caught(() => {
        const source = new PassThrough()
        const done = pipeline(source, new PassThrough().resume())
        source.destroy()
        return done
      }),
    ),
    shape('an untrusted certificate', 'authentication', () =>
      like('Error', 'self-signed certificate', { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
    ),
    shape("somebody else's certificate", 'authentication', () =>
      like('Error', "Hostname/IP does not match certificate's altnames: Host: a.test. is not in the cert's altnames", {
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      }),
    ),

    shape('a file that is not there', 'permanent', () => caught(() => readFile('/nowhere/at/all'))),
    shape('a folder read as a file', 'permanent', () => caught(() => readFile(tmpdir()))),
    shape('a file read as a folder', 'permanent', () => inFolder(file => readdir(file))),
    shape('a file that is already there', 'permanent', () => inFolder(file => open(file, 'wx'))),
    shape('a folder that is not empty', 'permanent', () => inFolder((_, folder) => rmdir(folder))),
    shape('a name that is too long', 'permanent', () => caught(() => readFile(join(tmpdir(), 'x'.repeat(300))))),
    shape('a file that may not be read', 'permanent', () => system('EACCES', 'permission denied', "open '/etc/x'")),
    shape('a program that is not installed', 'permanent', () => errorOf(spawn('no-such-program-here'))),
    shape('a full disk', 'system', () => system('ENOSPC', 'no space left on device', 'write')),
    shape('a quota used up', 'system', () => system('EDQUOT', 'disk quota exceeded', 'write')),
    shape('too many open files', 'system', () => system('EMFILE', 'too many open files', "open '/tmp/a'")),
    shape('a broken disk', 'system', () => system('EIO', 'i/o error', 'read')),
    shape('a disk gone read-only', 'system', () => system('EROFS', 'read-only file system', 'mkdir')),
    shape('no memory to fork', 'system', () => like('Error', 'spawn ENOMEM', { code: 'ENOMEM', syscall: 'spawn' })),
    shape('a port in use', 'system', () =>
      withSocketServer(
        () => {},
        port => errorOf(createServer().listen(port, '127.0.0.1')),
      ),
    ),
    shape('a file in use', 'transient', () => system('EBUSY', 'resource busy or locked', "unlink '/mnt/a'")),
    shape('a resource that is not free now', 'transient', () =>
      like('Error', 'spawn EAGAIN', { code: 'EAGAIN', syscall: 'spawn' }),
    ),
    shape('a worker thread out of memory', 'system', () =>
      errorOf(
        new Worker('const a = []; for (;;) a.push(new Array(1e5).fill("x"))', {
          eval: true,
          resourceLimits: { maxOldGenerationSizeMb: 4, maxYoungGenerationSizeMb: 1 },
        }) as never,
      ),
    ),
    shape('compressed data cut short', 'network', () =>
      caught(() => gunzipped(gzipSync('a long enough text').subarray(0, 12))),
    ),
    shape('data that is not compressed', 'permanent', () => caught(() => gunzipped(Buffer.from('plain text')))),
    shape('data that was tampered with', 'permanent', () =>
      caught(() => {
        const decipher = createDecipheriv('aes-256-gcm', randomBytes(32), randomBytes(12))
        decipher.setAuthTag(randomBytes(16))
        decipher.update(randomBytes(20))
        decipher.final()
      }),
    ),
    shape('a wrong argument', 'permanent', () => caught(() => readFile(7.5 as never))),
    shape('a module that is not there', 'permanent', () => caught(() => import(`${'no-such'}-package-here`))),
  ],
}

/** A file in a folder of its own, gone afterwards. */
async function inFolder(act: (file: string, folder: string) => Promise<unknown>): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-corpus-'))
  try {
    const file = join(folder, 'file')
    await writeFile(file, 'x')
    return await caught(() => act(file, folder))
  } finally {
    await rm(folder, { recursive: true })
  }
}
