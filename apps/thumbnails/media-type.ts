// What a file is, told by its first bytes and never by its name or by FFmpeg's own guess: FFmpeg also reads playlists and
// scripts, which name further files and hosts to open. Only what is listed here goes on, with its reader named.
import { ValidationError } from 'redrive'

export type MediaType =
  | { readonly type: 'video'; readonly demuxer: string }
  | { readonly type: 'image'; readonly format: 'jpeg' | 'png' | 'webp' | 'gif' | 'tiff' | 'avif' }

const TS_PACKET = 188
const MOST_BRAND_BYTES = 256
const M2TS_PACKET = 192

/** Boxes that an MP4 or QuickTime file may begin with. */
const FIRST_BOXES = new Set(['ftyp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot'])
const AVIF_BRANDS = new Set(['avif', 'avis'])
const HEIC_BRANDS = new Set(['heic', 'heix', 'hevc', 'hevx', 'heim', 'heis', 'mif1', 'msf1'])

/** Of UTF-8, seen as Latin-1. */
const BYTE_ORDER_MARK = /^\xEF\xBB\xBF/

/** What people send by mistake, or on purpose: named, so that the message helps. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/^\s*#EXTM3U/, 'a playlist (M3U8)'],
  [/^\s*\[playlist\]/i, 'a playlist (PLS)'],
  [/^\s*#?\s*ffconcat/, 'a concat script'],
  [/^\s*(?:file|http|concat|subfile|data)\s*[:' ]/i, 'a concat script'],
  [/^v=0\r?\n/, 'a session description (SDP)'],
  [/^\s*<(?:\?xml|svg|MPD|SmoothStreamingMedia|!DOCTYPE|html)/i, 'a text in XML, SVG or HTML'],
  [/^%PDF/, 'a PDF'],
  [/^PK/, 'a ZIP archive'],
  [/^BM/, 'a BMP picture'],
  [/^(?:ID3|fLaC|RIFF[\s\S]{4}WAVE|\xFF[\xFB\xF3\xF2\xF1\xF9])/, 'audio'],
]

export function mediaType(head: Uint8Array, key: string): MediaType {
  const shown = JSON.stringify(key)
  if (head.length === 0) throw new ValidationError(`${shown} is empty`)
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const known = imageType(bytes) ?? videoType(bytes)
  if (known) return known
  const start = bytes.toString('latin1', 0, 256).replace(BYTE_ORDER_MARK, '')
  const refused = isHeic(bytes) ? 'a HEIC picture' : REFUSED.find(([pattern]) => pattern.test(start))?.[1]
  throw new ValidationError(
    refused === undefined
      ? `${shown} is neither a video nor a picture that is known here`
      : `${shown} is ${refused}, not a video or picture that is known here`,
  )
}

function imageType(bytes: Buffer): MediaType | undefined {
  const starts = (hex: string) => bytes.subarray(0, hex.length / 2).equals(Buffer.from(hex, 'hex'))
  if (starts('ffd8ff')) return { type: 'image', format: 'jpeg' }
  if (starts('89504e470d0a1a0a')) return { type: 'image', format: 'png' }
  if (starts('474946383761') || starts('474946383961')) return { type: 'image', format: 'gif' }
  if (starts('49492a00') || starts('4d4d002a')) return { type: 'image', format: 'tiff' }
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP') return { type: 'image', format: 'webp' }
  if (brandsOf(bytes).some(brand => AVIF_BRANDS.has(brand))) return { type: 'image', format: 'avif' }
  return undefined
}

function videoType(bytes: Buffer): MediaType | undefined {
  const starts = (hex: string) => bytes.subarray(0, hex.length / 2).equals(Buffer.from(hex, 'hex'))
  if (FIRST_BOXES.has(text(bytes, 4, 8)) && !isHeic(bytes)) return { type: 'video', demuxer: 'mov' }
  if (starts('1a45dfa3')) return { type: 'video', demuxer: 'matroska' }
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 11) === 'AVI') return { type: 'video', demuxer: 'avi' }
  if (text(bytes, 0, 3) === 'FLV') return { type: 'video', demuxer: 'flv' }
  if (text(bytes, 0, 4) === 'OggS') return { type: 'video', demuxer: 'ogg' }
  if (starts('3026b2758e66cf11')) return { type: 'video', demuxer: 'asf' }
  if (starts('000001ba')) return { type: 'video', demuxer: 'mpeg' }
  if (starts('000001b3')) return { type: 'video', demuxer: 'mpegvideo' }
  if (everyPacket(bytes, 0, TS_PACKET) || everyPacket(bytes, 4, M2TS_PACKET))
    return { type: 'video', demuxer: 'mpegts' }
  return undefined
}

const text = (bytes: Buffer, start: number, end: number) => bytes.toString('latin1', start, end)

const isHeic = (bytes: Buffer) => HEIC_BRANDS.has(brandsOf(bytes)[0] ?? '')

/** What a file of the MP4 family says it is: first the brand it is of, then those it also goes for. */
function brandsOf(bytes: Buffer): string[] {
  if (text(bytes, 4, 8) !== 'ftyp') return []
  const end = Math.min(bytes.readUInt32BE(0), bytes.length, MOST_BRAND_BYTES)
  const others = Array.from({ length: Math.max(Math.floor((end - 16) / 4), 0) }, (_, index) =>
    text(bytes, 16 + index * 4, 20 + index * 4),
  )
  return [text(bytes, 8, 12), ...others]
}

/** A transport stream has no beginning, only a mark at each packet. */
const everyPacket = (bytes: Buffer, first: number, length: number) =>
  bytes.length > first + 2 * length && [0, 1, 2].every(packet => bytes[first + packet * length] === 0x47)
