// Programs that were run: how a command ended is in `code` (a number, not a status) or `signal`.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { caught, type Family, like, shape } from './shape.js'

const run = promisify(execFile)
const node = (script: string, options: object = {}) => caught(() => run(process.execPath, ['-e', script], options))

export const processes: Family = {
  family: 'programs that were run',
  shapes: [
    shape('killed from outside, as when memory runs out', 'system', () => node('process.kill(process.pid, "SIGKILL")')),
    shape('stopped by its time limit', 'transient', () => node('setInterval(() => {}, 1000)', { timeout: 300 })),
    shape('too much output', 'permanent', () => node('console.log("x".repeat(1e5))', { maxBuffer: 1000 })),
    shape('an exit code that looks like nothing else', 'transient', () => node('process.exit(3)')),
    shape('a complaint on its way out', 'permanent', () =>
      node('console.error("Unsupported codec: av2"); process.exit(1)'),
    ),
    shape('not found by the shell', 'permanent', () => caught(() => run('no-such-program-here', { shell: true }))),
    shape('ffmpeg: not a film', 'validation', () =>
      like('Error', 'Command failed: ffmpeg -i in.mp4 out.jpg\nin.mp4: Invalid data found when processing input\n', {
        code: 183,
        killed: false,
        signal: null,
        cmd: 'ffmpeg -i in.mp4 out.jpg',
      }),
    ),
  ],
}
