// A thumbnail worker in a process of its own, for the bench: the app as it is, compiled, on a folder whose reads are
// counted. Its parent tells it when to begin; it tells when each thumbnail is done, and at the end what it used.
import { readdirSync, readFileSync } from 'node:fs'
import { openRedrive } from '../../dist/index.js'

const [address = '', built, folder = '', decodersText] = process.argv.slice(2)
const decoders = Number(decodersText)
const app = (/** @type {string} */ file) => import(`${built}/${file}`)
const [{ thumbnailJob }, { FolderStorage }, { RangedReads }, { findFFmpeg }] = await Promise.all(
  ['thumbnail-job.js', 'storages/folder.js', 'ranged-reads.js', 'ffmpeg.js'].map(app),
)

let bytesRead = 0

/** What storage gives, counted. @param {import('../../apps/thumbnails/storage.js').Storage} storage */
const counted = storage => ({
  name: storage.name,
  check: () => storage.check(),
  close: () => storage.close(),
  write: storage.write.bind(storage),
  open: async (/** @type {string} */ key, /** @type {AbortSignal} */ signal) => {
    const object = await storage.open(key, signal)
    bytesRead += object.head.length
    return {
      ...object,
      read: async (/** @type {number} */ start, /** @type {number} */ end, /** @type {AbortSignal} */ reading) =>
        countedPieces(await object.read(start, end, reading)),
    }
  },
})

/** @param {AsyncIterable<Uint8Array>} pieces */
async function* countedPieces(pieces) {
  for await (const piece of pieces) {
    bytesRead += piece.length
    yield piece
  }
}

const parts = {
  storage: counted(new FolderStorage(folder)),
  ranged: new RangedReads(),
  ffmpeg: findFFmpeg(process.env),
  decoders,
  maxPixels: 1e8,
  memoryBytes: 2 ** 31,
}
const job = thumbnailJob(async () => parts, decoders)
const redrive = await openRedrive({ database: address, env: { LOG_LEVEL: 'silent' } })
redrive.on('job.completed', () => process.send?.({ completed: 1 }))
redrive.on('job.dead', ({ failure }) => process.send?.({ dead: failure.message }))

/** The largest FFmpeg so far, in bytes, looked at every tenth of a second. */
let largestFFmpeg = 0
const looking = setInterval(() => {
  for (const thread of readdirSync('/proc/self/task')) {
    for (const child of textOf(`/proc/self/task/${thread}/children`).split(' ').filter(Boolean)) {
      const size = /VmHWM:\s+(\d+) kB/.exec(textOf(`/proc/${child}/status`))?.[1]
      largestFFmpeg = Math.max(largestFFmpeg, Number(size ?? 0) * 1024)
    }
  }
}, 100)

/** @param {string} path */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // it has ended
  }
}

process.on('message', async (/** @type {string} */ command) => {
  if (command === 'work') redrive.work([job])
  if (command === 'usage') {
    const { maxRSS } = process.resourceUsage()
    process.send?.({ usage: { bytesRead, maxRss: maxRSS * 1024, largestFFmpeg } })
  }
  if (command === 'close') {
    clearInterval(looking)
    await redrive.close({ graceMs: 0 })
    await parts.ranged.close()
    process.disconnect()
  }
})
process.on('disconnect', () => process.exit())
process.send?.({ ready: true })
