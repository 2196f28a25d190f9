// What a thumbnail job is asked: the payload, checked when it is enqueued and again before it runs.
import { z } from 'zod'

/** Of a side, in pixels. */
export const LARGEST_SIDE = 4_096
const LONGEST_KEY = 1_024
const LATEST_SECONDS = 1_000_000

const seconds = z.number().min(0).max(LATEST_SECONDS)
const share = z.string().regex(/^(?:100|\d{1,2}(?:\.\d{1,3})?)%$/, 'seconds, or a share such as "50%"')
const side = z.int().min(1).max(LARGEST_SIDE)

const given = z.strictObject({
  /** Where in the video: seconds, or a share of its length. Without: one second in, or the first frame of a shorter one. */
  at: z.union([seconds, share]).optional(),
  /** With neither side given, it fits into 320 × 320. */
  width: side.optional(),
  height: side.optional(),
  format: z.enum(['jpg', 'png', 'webp']).default('jpg'),
  quality: z.int().min(1).max(100).default(80),
  /** `inside` keeps the proportions and never enlarges; the others give exactly the size that is asked for. */
  fit: z.enum(['inside', 'cover', 'contain', 'fill']).default('inside'),
})
const params = given.refine(
  ({ fit, width, height }) => fit === 'inside' || (width !== undefined && height !== undefined),
  'cover, contain and fill need both width and height',
)

export const thumbnailPayload = z.object({
  input_key: z
    .string()
    .min(1)
    .max(LONGEST_KEY)
    .refine(key => !key.includes('\0'), 'a key has no zero byte'),
  params: params.prefault({}),
})

export type ThumbnailRequest = z.input<typeof thumbnailPayload>
export type ThumbnailParams = z.output<typeof params>

export interface ThumbnailResult {
  readonly thumbnail_key: string
  readonly width: number
  readonly height: number
  readonly bytes: number
  /** How long it took to make. */
  readonly duration_ms: number
}

const DEFAULT_SIDE = 320

/** The box that a thumbnail fits into; an open side is as long as it may be. */
export function boxOf({ width, height }: ThumbnailParams): { readonly width: number; readonly height: number } {
  if (width === undefined && height === undefined) return { width: DEFAULT_SIDE, height: DEFAULT_SIDE }
  return { width: width ?? LARGEST_SIDE, height: height ?? LARGEST_SIDE }
}
