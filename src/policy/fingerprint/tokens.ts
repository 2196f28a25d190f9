// One word of a message: is it part of what happened, or only which one it happened to? The latter becomes a
// placeholder. A word is what stands between spaces, quotes and brackets; looking at it takes time in proportion
// to its length: every pattern is anchored or of bounded length, and none repeats inside a repetition.

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
const DATE = /^\d{4}[-/]\d\d[-/]\d\d(?:T[\d:.,]{4,20}(?:Z|[+-][\d:]{2,5})?)?$/i
const TIME = /^\d{1,2}:\d\d(?::\d\d)?(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?$/
const IPV4 = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:[:/]\d{1,5})?$/
const IPV6 = /^[0-9a-f:.]+$/i
const HOST_AND_PORT = /^(?:localhost|[a-z0-9-]{1,63}\.[a-z0-9.-]{1,253}):\d{1,5}$/i
const DOMAIN =
  /^[a-z0-9.-]{1,253}\.(?:com|net|org|io|dev|app|cloud|ai|co|eu|de|uk|fr|us|ch|at|nl|internal|intern|local|lan|corp|svc|test|example)\.?$/i
const WINDOWS_PATH = /^[a-z]:[\\/]/i
const FILE_NAME =
  /\.(?:png|jpe?g|gif|webp|svg|heic|tiff?|mp[34]|mov|avi|mkv|webm|wav|pdf|docx?|xlsx?|csv|tsv|json|xml|ya?ml|txt|log|html?|zip|gz|tar|tmp|bin|dat|parquet|sql|[cm]?[jt]sx?)(?::\d{1,9}){0,2}$/i
const OPAQUE = /^[A-Za-z0-9_-]{16,}$/
const ASSIGNMENT = /^[A-Za-z_][\w.-]*=/
const SIGN = /^[-+](?=\d)/

/** Words after which a number is a cause, not an instance: "exit code 137" is not "exit code 1". */
const TELLING = new Set(['status', 'code', 'http', 'error', 'errno', 'signal', 'sqlstate', 'errcode', 'exit'])
const TELLING_NUMBER = /^\d{1,5}$/
/** Words after which a name of a machine follows. */
const BEFORE_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH'])

export function placeholder(token: string, previous: string): string {
  const assignment = ASSIGNMENT.exec(token)?.[0]
  if (assignment !== undefined && assignment.length < token.length)
    return assignment + whole(token.slice(assignment.length), assignment.slice(0, -1))
  return whole(token, previous)
}

function whole(token: string, previous: string): string {
  const end = token.length - trailing(token)
  const word = token.slice(0, end)
  return (shape(word, previous) ?? pieces(word)) + token.slice(end)
}

/** Full stops and the like belong to the sentence. */
function trailing(token: string): number {
  let count = 0
  while (count < token.length && '.:!?'.includes(token.charAt(token.length - 1 - count))) count++
  return count
}

/** What the word as a whole looks like. */
function shape(word: string, previous: string): string | undefined {
  if (TELLING_NUMBER.test(word) && TELLING.has(previous.toLowerCase())) return word
  if (word.includes('://')) return '<url>'
  if (isEmail(word)) return '<email>'
  if (DATE.test(word) || TIME.test(word)) return '<date>'
  if (isPath(word)) return '<path>'
  if (isHost(word, previous)) return '<host>'
  if (word.startsWith('eyJ') || isOpaque(word)) return '#'
  return undefined
}

function isEmail(word: string): boolean {
  const at = word.indexOf('@')
  return at > 0 && word.indexOf('@', at + 1) < 0 && word.indexOf('.', at + 2) > 0
}

function isHost(word: string, previous: string): boolean {
  if (word === 'localhost' || IPV4.test(word) || HOST_AND_PORT.test(word) || DOMAIN.test(word)) return true
  if (IPV6.test(word) && /[0-9a-f]/i.test(word) && (word.includes('::') || word.split(':').length > 6)) return true
  return BEFORE_HOST.has(previous) && /[a-z]/i.test(word)
}

/** `application/json` and `Core/ResourceGroup` are names; `/tmp/x`, `a/b/c` and `in/photo.png` are places. */
function isPath(word: string): boolean {
  if (WINDOWS_PATH.test(word) || FILE_NAME.test(word)) return true
  const first = word.indexOf('/')
  if (first < 0 || word.startsWith('@')) return false
  return (
    (first === 0 && word.length > 1) || word.startsWith('./') || word.startsWith('~/') || word.includes('/', first + 1)
  )
}

/** A long run with digits, capitals and small letters is somebody's generated id. */
const isOpaque = (word: string): boolean =>
  OPAQUE.test(word) && /[a-z]/.test(word) && /[A-Z]/.test(word) && word.replace(/\D/g, '').length >= 3

/** The parts of a word that are numbers or ids: `job-4821` is `job-#`. */
function pieces(word: string): string {
  return word
    .replace(UUID, '#')
    .replace(SIGN, '')
    .replace(/[A-Za-z0-9]+/g, run => (isId(run) ? '#' : run.replace(/\d+/g, '#')))
    .replace(/#(?:\.#)+/g, '#')
}

function isId(run: string): boolean {
  if (!/\d/.test(run) || !/[A-Za-z]/.test(run)) return false
  if (run.length >= 16 || /^0x[0-9a-f]+$/i.test(run)) return true
  if (run.length >= 8 && /^[0-9a-f]+$/i.test(run)) return true
  return changes(run) >= 3
}

/** How often a run changes between letters and digits: words do it once (`utf8`), ids all the time (`3f9c`). */
function changes(run: string): number {
  let count = 0
  for (let index = 1; index < run.length; index++) {
    if (isDigit(run.charCodeAt(index)) !== isDigit(run.charCodeAt(index - 1))) count++
  }
  return count
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57
