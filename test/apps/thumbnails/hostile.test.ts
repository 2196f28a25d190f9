// Files made to do harm: playlists and scripts that name other files and hosts, pictures that claim to be enormous, names
// for a shell. They do nothing but fail, and neither the files nor the hosts they name are touched.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32, deflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { directly } from './support/direct.js'
import { look } from './support/look.js'
import { image, video } from './support/media.js'

let folder: string
let secret: string
let visits = 0
let host: Server
let hostUrl: string
let worker: ReturnType<typeof directly>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-hostile-'))
  await mkdir(join(folder, 'media'))
  worker = directly({ MEDIA_DIR: join(folder, 'media') })
  // A real picture, so that reading it would give a thumbnail.
  secret = join(folder, 'secret.png')
  await writeFile(secret, await image('png'))
  host = createServer((_, response) => {
    visits += 1
    void readFile(secret).then(bytes => response.end(bytes))
  })
  host.listen(0, '127.0.0.1')
  await once(host, 'listening')
  hostUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
})

afterAll(async () => {
  host.close()
  await rm(folder, { recursive: true, force: true })
})

const put = (key: string, body: string | Uint8Array) => writeFile(join(folder, 'media', key), body)

async function failsCleanly(key: string, body: string | Uint8Array): Promise<string> {
  await put(key, body)
  const failure = await worker.failure(key)
  expect(visits).toBe(0)
  expect(existsSync(join(folder, 'media', 'processed'))).toBe(false)
  return failure
}

describe('scripts that name other files and hosts', () => {
  const entries = () => [
    `file://${secret}`,
    secret,
    `${hostUrl}/x.ts`,
    'concat:a|b',
    `subfile,,start,0,end,9,,:${secret}`,
  ]

  test.each<[string, () => string, string]>([
    [
      'hls.mp4',
      () => `#EXTM3U\n#EXTINF:1,\n${entries().join('\n#EXTINF:1,\n')}\n#EXT-X-ENDLIST\n`,
      'a playlist (M3U8)',
    ],
    ['bom.mp4', () => `\uFEFF \n#EXTM3U\n${entries().join('\n')}`, 'a playlist (M3U8)'],
    [
      'concat.mp4',
      () =>
        `ffconcat version 1.0\n${entries()
          .map(entry => `file '${entry}'`)
          .join('\n')}`,
      'a concat script',
    ],
    ['bare-concat.mp4', () => `file '${secret}'\nfile '${hostUrl}/a'\n`, 'a concat script'],
    ['session.mp4', () => 'v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n', 'a session description (SDP)'],
    [
      'manifest.mp4',
      () => `<?xml version="1.0"?><MPD><BaseURL>${hostUrl}</BaseURL></MPD>`,
      'a text in XML, SVG or HTML',
    ],
    [
      'drawing.png',
      () => `<svg xmlns="http://www.w3.org/2000/svg"><image href="${hostUrl}/a.png"/></svg>`,
      'a text in XML',
    ],
    ['list.pls', () => `[playlist]\nFile1=${hostUrl}\n`, 'a playlist (PLS)'],
  ])('%s', async (key, body, name) => {
    expect(await failsCleanly(key, body())).toMatch(`validation: ${JSON.stringify(key)} is ${name}`)
  })

  test('a playlist behind the beginning of a real container stays unread', { timeout: 60_000 }, async () => {
    const playlist = `#EXTM3U\n#EXTINF:1,\n${hostUrl}/x.ts\n`
    const box = Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isommp42', 'latin1')
    expect(await failsCleanly('polyglot.mp4', Buffer.concat([box, Buffer.from(playlist)]))).toMatch(/^permanent: /)
    expect(await failsCleanly('polyglot.mkv', `\x1a\x45\xdf\xa3${playlist}`)).toMatch(/^(?:permanent|validation): /)
  })

  test('a video whose data is said to be in another file', { timeout: 60_000 }, async () => {
    const bytes = withDataIn(secret, await video('mov'))
    expect(await failsCleanly('elsewhere.mov', bytes)).toMatch(/^(?:permanent|validation): /)
  })
})

describe('pictures that claim to be enormous', () => {
  test('PNG and GIF', async () => {
    const chunk = (type: string, data: Buffer) => {
      const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
      const head = Buffer.alloc(4)
      head.writeUInt32BE(data.length)
      const sum = Buffer.alloc(4)
      sum.writeUInt32BE(crc32(body))
      return Buffer.concat([head, body, sum])
    }
    const header = Buffer.alloc(13)
    header.writeUInt32BE(60_000, 0)
    header.writeUInt32BE(60_000, 4)
    header[8] = 8
    const signature = Buffer.from('89504e470d0a1a0a', 'hex')
    const idat = chunk('IDAT', deflateSync(Buffer.alloc(60_001)))
    const png = Buffer.concat([signature, chunk('IHDR', header), idat, chunk('IEND', Buffer.alloc(0))])
    expect(await failsCleanly('bomb.png', png)).toMatch('validation: "bomb.png" has more pixels than allowed')

    const gif = Buffer.from('474946383961ffffffff800000ff0000000000', 'hex')
    expect(await failsCleanly('bomb.gif', gif)).toMatch(/^(?:validation|permanent): "bomb.gif" /)
  })
})

describe('names', () => {
  test('shell characters in a name are only a name', { timeout: 60_000 }, async () => {
    const name = `$(touch pwned)\`touch pwned\`;touch pwned|'"&\\n -i x.mp4`
    await put(name, await video('mp4'))
    const { thumbnail_key } = await worker.attempt(name).ended
    expect((await look(await readFile(join(folder, 'media', thumbnail_key)))).width).toBe(160)
    expect((await readdir(folder)).includes('pwned') || existsSync('pwned')).toBe(false)
    await rm(join(folder, 'media', 'processed'), { recursive: true })
  })

  test('a key cannot leave the folder', async () => {
    await symlink(secret, join(folder, 'media', 'link.png'))
    await promisify(execFile)('mkfifo', [join(folder, 'media', 'pipe.png')])
    for (const key of ['../secret.png', secret, 'link.png', '.', 'a/../../secret.png'])
      expect(await worker.failure(key)).toMatch(/^validation: .* leads out of the folder$/)
    expect(await worker.failure('pipe.png')).toBe('validation: "pipe.png" is not a file')
    expect(await worker.failure('secret.png/../nothing')).toMatch(/^permanent: There is no file/)
  })
})

/** A QuickTime file that says, in the way of old Macs, that its frames are to be read from another file. */
function withDataIn(path: string, mov: Buffer): Buffer {
  const alias = Buffer.alloc(150)
  const name = Buffer.from(path.length % 2 === 0 ? path : `${path}\0`, 'latin1')
  const absolute = Buffer.concat([uint16(2), uint16(name.length), name, uint16(0xffff), uint16(0)])
  const entry = box('alis', Buffer.concat([Buffer.alloc(4), alias, absolute]))
  const dref = box('dref', Buffer.concat([Buffer.alloc(4), Buffer.from([0, 0, 0, 1]), entry]))
  const within = new Set(['moov', 'trak', 'mdia', 'minf', 'dinf'])
  // The index is behind the frames here: what is in it can grow without moving them.
  const rewritten = (bytes: Buffer): Buffer => {
    const parts: Buffer[] = []
    for (let at = 0; at + 8 <= bytes.length; ) {
      const size = bytes.readUInt32BE(at)
      const type = bytes.toString('latin1', at + 4, at + 8)
      const body = bytes.subarray(at + 8, at + size)
      const kept = bytes.subarray(at, at + size)
      parts.push(type === 'dref' ? dref : within.has(type) ? box(type, rewritten(body)) : kept)
      at += size
    }
    return Buffer.concat(parts)
  }
  return rewritten(mov)
}

function box(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(body.length + 8)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, body])
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
