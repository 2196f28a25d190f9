// The job `thumbnail`: an object in storage → what it is → one picture of it → processed/<job id>/thumb.<ext>. The same
// job always writes the same key, and the key appears only when it is complete, so running it again is harmless.
import { defineJob, type HandlerContext } from 'redrive'
import type { FFmpeg } from './ffmpeg.js'
import type { Limits } from './limited-run.js'
import { mediaType } from './media-type.js'
import { type ThumbnailParams, type ThumbnailRequest, type ThumbnailResult, thumbnailPayload } from './payload.js'
import { imageThumbnail, makeThumbnail, type Thumbnail } from './picture.js'
import { Places } from './places.js'
import { ProgressReport } from './progress-report.js'
import type { RangedReads } from './ranged-reads.js'
import { STORAGE_SERVICE, type Storage, type StoredObject } from './storage.js'
import { videoFrame } from './video-frame.js'

export interface ThumbnailParts {
  readonly storage: Storage
  readonly ranged: RangedReads
  readonly ffmpeg: FFmpeg
  readonly decoders: number
  readonly maxPixels: number
  readonly memoryBytes: number
}

export const QUEUE = 'thumbnails'
const CONTENT_TYPES = { jpg: 'image/jpeg', png: 'image/png', webp: 'image/webp' } as const

/** The whole attempt; what FFmpeg gets is less, and grows with the input. */
const TIMEOUT_MS = 15 * 60_000
const LEAST_TIME_MS = 60_000
const MOST_TIME_MS = 10 * 60_000
const BYTES_A_MS = 10_000
const CPU_SECONDS = 120
const OUTPUT_BYTES = 128 * 1024 * 1024

/** More jobs than decoders, so that one reads while another decodes. */
const JOBS_A_DECODER = 2

export function thumbnailJob(open: () => Promise<ThumbnailParts>, decoders: number) {
  const places = new Places(decoders)
  return defineJob<ThumbnailRequest, { input_key: string; params: ThumbnailParams }, ThumbnailResult>({
    name: 'thumbnail',
    queue: QUEUE,
    service: STORAGE_SERVICE,
    schema: thumbnailPayload,
    timeoutMs: TIMEOUT_MS,
    concurrency: decoders * JOBS_A_DECODER,
    handler: async ({ input_key, params }, { job, signal, progress, log }) => {
      const startedAt = performance.now()
      const parts = await open()
      const { storage } = parts
      const report = new ProgressReport(progress)
      try {
        const object = await storage.open(input_key, signal)
        report.follow(() => ({ step: 'decoding', bytes: object.size }))
        const thumbnail = await thumbnailOf(object, params, { parts, places, signal, report }).finally(() =>
          object.close(),
        )
        const thumbnail_key = `processed/${job.id}/thumb.${params.format}`
        report.follow(() => ({ step: 'writing', thumbnail_key }))
        await storage.write(thumbnail_key, thumbnail.data, { contentType: CONTENT_TYPES[params.format], signal })
        const { width, height, data } = thumbnail
        const duration_ms = Math.round(performance.now() - startedAt)
        log.info('made a thumbnail', { input_key, thumbnail_key, duration_ms })
        return { thumbnail_key, width, height, bytes: data.length, duration_ms }
      } finally {
        report.end()
      }
    },
  })
}

interface Making {
  readonly parts: ThumbnailParts
  readonly places: Places
  readonly signal: HandlerContext['signal']
  readonly report: ProgressReport
}

async function thumbnailOf(object: StoredObject, params: ThumbnailParams, making: Making): Promise<Thumbnail> {
  const { parts, places, signal, report } = making
  const { maxPixels } = parts
  const media = mediaType(object.head, object.key)
  if (media.type === 'image') return places.within(signal, () => imageThumbnail(object, params, { maxPixels, signal }))
  const offer = await parts.ranged.offer(object, signal)
  report.follow(() => ({ step: 'decoding', bytes: object.size, bytes_read: offer.bytesRead }))
  try {
    const video = { key: object.key, demuxer: media.demuxer, offer }
    const limits = limitsFor(object.size, parts.memoryBytes)
    return await places.within(signal, async () => {
      const frame = await videoFrame(video, params, { ffmpeg: parts.ffmpeg, limits, maxPixels, signal })
      return makeThumbnail(frame, params, JSON.stringify(object.key), maxPixels)
    })
  } finally {
    offer.close()
  }
}

const limitsFor = (size: number, memoryBytes: number): Limits => ({
  timeMs: Math.min(LEAST_TIME_MS + Math.ceil(size / BYTES_A_MS), MOST_TIME_MS),
  cpuSeconds: CPU_SECONDS,
  memoryBytes,
  outputBytes: OUTPUT_BYTES,
})
