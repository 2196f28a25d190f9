// Real media for tests, made by FFmpeg: videos whose colour changes every second (red, green, blue), in several codecs,
// containers and sizes, so that the time a thumbnail was taken from can be read off it. Made once for a test file.
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll } from 'vitest'
import { findFFmpeg } from '../../../../apps/thumbnails/ffmpeg.js'

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'redrive-media-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

const { path: program } = findFFmpeg(process.env)
const made = new Map<string, Promise<Buffer>>()
let files = 0

/** What FFmpeg writes with these arguments, as a file of this ending. The same arguments are run once. */
export function media(ending: string, ...args: string[]): Promise<Buffer> {
  const key = [ending, ...args].join('\0')
  const found = made.get(key)
  if (found !== undefined) return found
  files += 1
  const file = join(folder, `${files}.${ending}`)
  const making = execute(program, ['-nostdin', '-v', 'error', '-y', ...args, file]).then(() => readFile(file))
  made.set(key, making)
  return making
}

export interface VideoOptions {
  readonly size?: string
  /** Arguments of the encoder. */
  readonly codec?: readonly string[]
  readonly audio?: readonly string[]
  readonly seconds?: number
}

/** Red for a second, then green, then blue. */
export function video(
  ending: string,
  { size = '160x120', codec = ['-c:v', 'mpeg4'], audio, seconds = 3 }: VideoOptions = {},
) {
  const colours = ['red', 'lime', 'blue']
  const second = colours
    .slice(0, Math.ceil(seconds))
    .flatMap(colour => ['-f', 'lavfi', '-i', `color=${colour}:s=${size}:r=10:d=${Math.min(seconds, 1)}`])
  const count = Math.ceil(seconds)
  const joined = `${Array.from({ length: count }, (_, index) => `[${index}:v]`).join('')}concat=n=${count}[v]`
  const sound = audio ? ['-f', 'lavfi', '-i', `sine=d=${seconds}`] : []
  const maps = ['-map', '[v]', ...(audio ? ['-map', `${count}:a`, ...audio] : [])]
  return media(
    ending,
    ...second,
    ...sound,
    '-filter_complex',
    joined,
    ...maps,
    '-pix_fmt',
    'yuv420p',
    '-g',
    '10',
    ...codec,
  )
}

/** One picture of one colour, with a corner of another so that a mirrored or empty one would be noticed. */
export const image = (ending: string, size = '320x240', ...args: string[]) =>
  media(ending, '-f', 'lavfi', '-i', `color=red:s=${size},drawbox=0:0:iw/2:ih/2:blue:fill`, '-frames:v', '1', ...args)
