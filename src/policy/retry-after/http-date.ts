// Dates as HTTP and rate-limit headers write them, to milliseconds since 1970. Computed by hand: `Date` is for
// domain/clock.ts, and its parser accepts far more than a header may say.

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

// Each is anchored and without nested repetition: linear on any input.
/** Sun, 06 Nov 1994 08:49:37 GMT, and the old Sunday, 06-Nov-94 08:49:37 GMT. */
const RFC = /^[a-z]{3,9}, (\d\d)[ -]([a-z]{3})[ -](\d{4}|\d\d) (\d\d):(\d\d):(\d\d) (?:gmt|utc)$/
/** Sun Nov  6 08:49:37 1994 */
const ASCTIME = /^[a-z]{3} ([a-z]{3}) [ ]?(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})$/
/** 1994-11-06T08:49:37.123Z, in UTC or with an offset. */
const ISO = /^(\d{4})-(\d\d)-(\d\d)t(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:z|([+-])(\d\d):?(\d\d))$/

/** Undefined for anything that is not such a date. */
export function parseHttpDate(text: string): number | undefined {
  const lower = text.toLowerCase()
  const rfc = RFC.exec(lower)
  if (rfc) return utcMs(year(rfc[3]), month(rfc[2]), int(rfc[1]), int(rfc[4]), int(rfc[5]), int(rfc[6]))
  const asctime = ASCTIME.exec(lower)
  if (asctime) {
    const [, name, day, hour, minute, second, full] = asctime
    return utcMs(int(full), month(name), int(day), int(hour), int(minute), int(second))
  }
  const iso = ISO.exec(lower)
  if (!iso) return undefined
  const local = utcMs(int(iso[1]), int(iso[2]), int(iso[3]), int(iso[4]), int(iso[5]), int(iso[6]))
  const offsetMs = (int(iso[8] ?? '0') * 60 + int(iso[9] ?? '0')) * 60_000
  return local === undefined ? undefined : local - (iso[7] === '-' ? -offsetMs : offsetMs)
}

const int = (digits: string | undefined): number => Number.parseInt(digits ?? '', 10)
const month = (name: string | undefined): number => MONTHS.indexOf(name ?? '') + 1

/** Two digits are of this century below 70, as everywhere. */
function year(digits: string | undefined): number {
  const value = int(digits)
  if (digits?.length !== 2) return value
  return value < 70 ? 2000 + value : 1900 + value
}

function utcMs(y: number, m: number, d: number, h: number, min: number, s: number): number | undefined {
  if (m < 1 || m > 12 || d < 1 || d > 31 || h > 23 || min > 59 || s > 60) return undefined
  return ((daysSince1970(y, m, d) * 24 + h) * 60 + min) * 60_000 + s * 1_000
}

/** Days in the Gregorian calendar. The year is taken to begin in March, which puts the leap day last. */
function daysSince1970(y: number, m: number, d: number): number {
  const shifted = m > 2 ? y : y - 1
  const dayOfYear = Math.floor((153 * (m > 2 ? m - 3 : m + 9) + 2) / 5) + d - 1
  const leapDays = Math.floor(shifted / 4) - Math.floor(shifted / 100) + Math.floor(shifted / 400)
  const daysTo1970 = 719_468
  return shifted * 365 + leapDays + dayOfYear - daysTo1970
}
