// Which FFmpeg: the one that is named, else the system's, else the one that an npm package brings.
import { createRequire } from 'node:module'
import { RedriveError } from 'redrive'
import { findProgram, runnable } from './limited-run.js'

export interface FFmpeg {
  readonly path: string
  /** From npm: old, and without the security fixes that a system gets. */
  readonly bundled: boolean
}

export function findFFmpeg(env: Readonly<Record<string, string | undefined>>): FFmpeg {
  const named = env.FFMPEG_PATH
  if (named) {
    if (!runnable(named)) throw missing(`FFMPEG_PATH is ${JSON.stringify(named)}; it must be a program that can be run`)
    return { path: named, bundled: false }
  }
  const system = findProgram('ffmpeg', env.PATH)
  if (system !== undefined) return { path: system, bundled: false }
  const bundled = bundledFFmpeg()
  if (bundled !== undefined) return { path: bundled, bundled: true }
  throw missing('There is no FFmpeg: install it with the package manager of your system, or set FFMPEG_PATH')
}

function bundledFFmpeg(): string | undefined {
  try {
    const { path } = createRequire(import.meta.url)('@ffmpeg-installer/ffmpeg') as { path: string }
    return runnable(path) ? path : undefined
  } catch {
    return undefined // it was not installed, or is not made for this platform
  }
}

const missing = (message: string) => new RedriveError('SETTING_INVALID', message)
