// A thumbnail as a person sees it: decoded, its size, and the colour at a place.
import sharp from 'sharp'

export type Colour = 'red' | 'green' | 'blue' | 'white' | 'black' | 'other'

export interface Seen {
  readonly format: string
  readonly width: number
  readonly height: number
  /** At a share of width and height. */
  at(x: number, y: number): Colour
}

export async function look(bytes: Uint8Array): Promise<Seen> {
  const { format } = await sharp(bytes).metadata()
  const { data, info } = await sharp(bytes)
    .removeAlpha()
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true })
  return {
    format: format ?? 'none',
    width: info.width,
    height: info.height,
    at(x, y) {
      const pixel = Math.floor(y * info.height) * info.width + Math.floor(x * info.width)
      return colourOf([0, 1, 2].map(channel => data[pixel * info.channels + channel] ?? 0))
    },
  }
}

function colourOf(channels: readonly number[]): Colour {
  const bright = channels.map(channel => (channel > 180 ? 1 : channel < 90 ? 0 : 9)).join('')
  const names: Record<string, Colour> = { 100: 'red', '010': 'green', '001': 'blue', 111: 'white', '000': 'black' }
  return names[bright] ?? 'other'
}
