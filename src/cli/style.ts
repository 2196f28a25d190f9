// Colours, where there is a terminal that shows them and nobody said NO_COLOR.

export type Paint = (text: string) => string

export interface Style {
  readonly dim: Paint
  readonly bold: Paint
  readonly red: Paint
  readonly yellow: Paint
  readonly green: Paint
}

const as =
  (on: number, off: number): Paint =>
  text =>
    text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`
const asIs: Paint = text => text

export const PLAIN: Style = { dim: asIs, bold: asIs, red: asIs, yellow: asIs, green: asIs }
export const COLOURED: Style = {
  dim: as(2, 22),
  bold: as(1, 22),
  red: as(31, 39),
  yellow: as(33, 39),
  green: as(32, 39),
}

export const styleFor = (stream: { isTTY?: boolean }, env: Readonly<Record<string, string | undefined>>): Style =>
  stream.isTTY && !env.NO_COLOR && env.TERM !== 'dumb' ? COLOURED : PLAIN
