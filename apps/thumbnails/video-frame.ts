// One frame of a video, by FFmpeg, as a PNG no larger than needed. FFmpeg is told what to read (the demuxer is named, the
// list of decoders is short, audio is not decoded), from where (one address, plain HTTP to this process) and how much it may use.
import type { FFmpeg } from './ffmpeg.js'
import { type Limits, limitedRun, type Run } from './limited-run.js'
import { boxOf, type ThumbnailParams } from './payload.js'
import type { Offer } from './ranged-reads.js'
import { noFrame, videoFailure } from './video-failure.js'

export interface VideoFrameOptions {
  readonly ffmpeg: FFmpeg
  readonly limits: Limits
  readonly maxPixels: number
  readonly signal: AbortSignal
}

interface Video {
  readonly key: string
  readonly demuxer: string
  readonly offer: Offer
}

const DEFAULT_AT_SECONDS = 1
const END_SECONDS = 1
const MOST_BYTES_OF_ONE_ALLOCATION = 512 * 1024 * 1024
const PROBED_BYTES = 5_000_000
const PROBED_MICROSECONDS = 5_000_000
const BUFFER_BYTES = 32 * 1024
const SEGMENT_BYTES = 1_448

/** By the names of FFmpeg's decoders. What is not here is not decoded, however well FFmpeg could. */
const DECODERS =
  `h264 hevc vp8 vp9 libvpx libvpx-vp9 av1 libdav1d libaom-av1 mpeg4 msmpeg4 msmpeg4v1 msmpeg4v2 mpeg1video
  mpeg2video h263 flv wmv1 wmv2 wmv3 vc1 mjpeg prores dnxhd theora ffv1 rawvideo`.split(/\s+/)

export async function videoFrame(video: Video, params: ThumbnailParams, options: VideoFrameOptions): Promise<Buffer> {
  const { at = DEFAULT_AT_SECONDS } = params
  const seconds = typeof at === 'number' ? at : await shareOf(video, at, options)
  // The last frame is shown until the end, and a container may say a little more than there is: a second earlier will do.
  const near = new Set([seconds, Math.max(seconds - END_SECONDS, 0)])
  // If it is shorter than that: without a wish any frame will do; with one, it matters whether there is any.
  let words = ''
  for (const second of near.add(0)) {
    const run = await frameAt(video, second, params, options)
    words = run.words
    if (run.output.length === 0) continue
    if (params.at !== undefined && seconds - second > END_SECONDS) throw noFrame(video.key, seconds)
    return run.output
  }
  throw noFrame(video.key, undefined, words)
}

async function frameAt(
  video: Video,
  seconds: number,
  params: ThumbnailParams,
  { ffmpeg, limits, maxPixels, signal }: VideoFrameOptions,
): Promise<Run> {
  const args = [
    ...reading(video, maxPixels),
    ...(seconds > 0 ? ['-ss', seconds.toFixed(3)] : []),
    ...['-i', video.offer.url],
    // V, not v: the cover of a song is not a video.
    ...['-map', '0:V:0', '-frames:v', '1', '-vf', scaling(params)],
    ...['-pix_fmt', 'rgb24', '-c:v', 'png', '-compression_level', '1', '-threads', '1', '-f', 'image2pipe', 'pipe:1'],
  ]
  const run = await limitedRun(ffmpeg.path, args, limits, signal)
  throwIfFailed(run, video, limits)
  return run
}

/** The second that a share of the length means. FFmpeg tells the length when it is given nothing to write. */
async function shareOf(video: Video, share: string, { ffmpeg, limits, maxPixels, signal }: VideoFrameOptions) {
  const args = [...reading(video, maxPixels, 'info'), '-i', video.offer.url]
  const run = await limitedRun(ffmpeg.path, args, limits, signal)
  const [, hours, minutes, seconds] = /^\s*Duration: (\d+):(\d\d):(\d\d\.\d+)/m.exec(run.words) ?? []
  if (hours === undefined) {
    if (!/Duration: N\/A/.test(run.words)) throwIfFailed(run, video, limits)
    throw noFrame(video.key, share)
  }
  const length = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)
  // The very end is behind the last frame.
  return Math.min((length * Number.parseFloat(share)) / 100, Math.max(length - 0.1, 0))
}

const reading = ({ demuxer }: Video, maxPixels: number, level = 'error') => [
  ...['-nostdin', '-hide_banner', '-v', level, '-max_alloc', String(MOST_BYTES_OF_ONE_ALLOCATION)],
  ...['-protocol_whitelist', 'http,tcp', '-format_whitelist', demuxer, '-codec_whitelist', DECODERS.join(',')],
  ...['-f', demuxer, '-threads', '1', '-max_pixels', String(maxPixels)],
  ...['-probesize', String(PROBED_BYTES), '-analyzeduration', String(PROBED_MICROSECONDS), '-seekable', '1'],
  // How many frames a second there are does not matter for one of them.
  ...['-fpsprobesize', '0'],
  // On the way from the last key frame, those that no other frame needs: the one that is found is at most a few later.
  ...['-skip_frame', 'noref'],
  // Small buffers in the network between us: what lies in them when FFmpeg seeks was read for nothing.
  ...['-recv_buffer_size', String(BUFFER_BYTES), '-tcp_mss', String(SEGMENT_BYTES)],
]

/** Down to what is needed, never up, with square pixels; the exact size is made afterwards. */
function scaling(params: ThumbnailParams): string {
  const { width, height } = boxOf(params)
  const fitting = params.fit === 'inside' ? 'min' : 'max'
  const factor = `min(1,${fitting}(${width}/(iw*sar),${height}/ih))`
  return `scale=w='max(1,round(iw*sar*${factor}))':h='max(1,round(ih*${factor}))':flags=area,setsar=1`
}

function throwIfFailed(run: Run, { key, offer }: Video, limits: Limits): void {
  // What storage said comes first: FFmpeg only saw a connection that broke.
  if (offer.failure !== undefined) throw offer.failure
  if (run.end.type === 'exited' && run.end.code === 0) return
  throw videoFailure(run, key, { limits, storageSlow: offer.waiting })
}
