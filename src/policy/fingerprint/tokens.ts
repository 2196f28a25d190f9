// One word of a message: is it part of what happened, or only which one it happened to? The latter becomes a
// placeholder. A word is what stands between spaces, quotes and brackets; looking at it takes time in proportion
// to its length: every pattern is anchored or of bounded length, and none repeats inside a repetition.

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
const DATE = /^\d{4}[-/]\d\d[-/]\d\d(?:T[\d:.,]{4,20}(?:Z|[+-][\d:]{2,5})?)?$/i
const TIME = /^\d{1,2}:\d\d(?::\d\d)?(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?$/
const IPV4 = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:[:/]\d{1,5})?$/
const MAC = /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}$/i
const NUMBER = /^[-+]?\d{1,30}(?:\.\d{1,30})?(?:e[-+]?\d{1,4})?%?$/i
/** 850ms, 12MB, 3rd: how long, how large, which one. */
const AMOUNT = /^\d{1,20}(?:ns|us|µs|ms|s|m|h|d|min|sec|b|[kmgt]i?b|st|nd|rd|th)$/i
/** What Kubernetes adds to the name of a deployment: -7d9f8b6c5d-x2x4z. */
const POD = /-[0-9a-f]{6,10}-[b-df-hj-np-tv-xz2-9]{5}$/
const IPV6 = /^[0-9a-f:.]+$/i
const HOST_AND_PORT = /^(?:localhost|[a-z0-9-]{1,63}\.[a-z0-9.-]{1,253}):\d{1,5}$/i
const DOMAIN =
  /^[a-z0-9.-]{1,253}\.(?:com|net|org|io|dev|app|cloud|ai|co|eu|de|uk|fr|us|ch|at|nl|internal|intern|local|lan|corp|svc|test|example)\.?$/i
const WINDOWS_PATH = /^[a-z]:[\\/]/i
const FILE_NAME =
  /\.(?:png|jpe?g|gif|webp|svg|heic|tiff?|mp[34]|mov|avi|mkv|webm|wav|pdf|docx?|xlsx?|csv|tsv|json|xml|ya?ml|txt|log|html?|zip|gz|tar|tmp|bin|dat|parquet|sql|[cm]?[jt]sx?)(?::\d{1,9}){0,2}$/i
const OPAQUE = /^[A-Za-z0-9_-]{16,}$/
const ASSIGNMENT = /^[A-Za-z_][\w.-]*=/
const LABEL = /^([A-Za-z]{3,10}):(?=\d)/
const SIGN = /^[-+](?=\d)/

/** Words after which a number is a cause, not an instance: "exit code 137" is not "exit code 1". */
const TELLING = new Set(['status', 'code', 'http', 'error', 'errno', 'signal', 'sqlstate', 'errcode', 'exit'])
const TELLING_NUMBER = /^\d{1,5}$/
const SQLSTATE = /^[0-9A-Z]{5}$/
/** `responded with 503`, `returned 404`: an answer's status, where it stands for itself. */
const ANSWERED = new Set(['responded', 'answered', 'replied', 'returned', 'response'])
const STATUS = /^[45]\d\d$/
/** Error codes of vendors that look like somebody's id. */
const VENDOR_CODE = /^(?:ORA-\d{5}|AADSTS\d{5,7}|TS\d{4}|P[1-6]0\d\d|E11000)$/
/** Names that end in a number, not numbers: an unsupported h265 is not an unsupported h264. */
const NUMBERED_NAMES = new Set(
  `utf8 utf16 latin1 h264 h265 x264 x265 vp8 vp9 av1 mp3 mp4 ac3 eac3 sha1 sha256 sha384 sha512 md5 base32 base64 ipv4
   ipv6 http1 http2 http3 int2 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float4 float8 float32 float64 rs256
   hs256 es256 oauth1 oauth2 s3 ec2 x86 x64 arm64 amd64`.split(/\s+/),
)
/** Words after which a name of a machine follows. */
const BEFORE_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH'])
/** Words after which `name:port` is a machine: elsewhere it may be `line:17`. */
const BEFORE_PORT = new Set(['to', 'from', 'host', 'server', 'connect', 'connecting', 'reach', 'upstream', 'via'])
const NAME_AND_PORT = /^[a-z][a-z0-9-]{0,62}:\d{2,5}$/i

/** Most words of a message: letters, and at most the end of a sentence. They are what happened, and stay. */
const PLAIN = /^[A-Za-z]{1,15}[.:!?]*$/

/** `previous` and `before` are the words that went before, the nearer one first. */
export function placeholder(token: string, previous: string, before = ''): string {
  if (PLAIN.test(token) && !isPlainInstance(token, previous)) return token
  const assignment = ASSIGNMENT.exec(token)?.[0]
  if (assignment !== undefined && assignment.length < token.length)
    return assignment + whole(token.slice(assignment.length), assignment.slice(0, -1))
  const label = LABEL.exec(token)
  if (label?.[1] !== undefined && TELLING.has(label[1].toLowerCase()))
    return label[0] + whole(token.slice(label[0].length), label[1])
  return whole(token, ANSWERED.has(before.toLowerCase()) && previous === 'with' ? before : previous)
}

const isPlainInstance = (token: string, previous: string): boolean =>
  BEFORE_HOST.has(previous) || token.startsWith('localhost') || token.startsWith('eyJ')

/** A name of the program, given in quotes: only what moves inside it goes. */
export const placeholderInName = (name: string): string =>
  name.includes('/') && isPath(name) ? '<path>' : pieces(name)

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
  if (isTelling(word, previous.toLowerCase())) return word
  if (word.includes('://')) return '<url>'
  if (isEmail(word)) return '<email>'
  if (DATE.test(word) || TIME.test(word)) return '<date>'
  if (NUMBER.test(word) || AMOUNT.test(word) || MAC.test(word) || word.startsWith('arn:')) return '#'
  if (isPath(word)) return '<path>'
  if (isHost(word, previous)) return '<host>'
  if (word.startsWith('eyJ') || isOpaque(word)) return '#'
  return undefined
}

function isTelling(word: string, previous: string): boolean {
  if (TELLING_NUMBER.test(word) && TELLING.has(previous)) return true
  if (STATUS.test(word) && ANSWERED.has(previous)) return true
  return (previous === 'sqlstate' && SQLSTATE.test(word)) || VENDOR_CODE.test(word)
}

function isEmail(word: string): boolean {
  const at = word.indexOf('@')
  return at > 0 && word.indexOf('@', at + 1) < 0 && word.indexOf('.', at + 2) > 0
}

function isHost(word: string, previous: string): boolean {
  if (word === 'localhost' || IPV4.test(word) || HOST_AND_PORT.test(word) || DOMAIN.test(word)) return true
  if (IPV6.test(word) && /[0-9a-f]/i.test(word) && (word.includes('::') || word.split(':').length > 6)) return true
  if (BEFORE_PORT.has(previous.toLowerCase()) && NAME_AND_PORT.test(word)) return true
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

/** A long run with digits, capitals and small letters, or that changes between them all the time, is a generated id. */
function isOpaque(word: string): boolean {
  if (!OPAQUE.test(word) || !/[a-z]/.test(word) || !/[A-Z]/.test(word)) return false
  return word.replace(/\D/g, '').length >= 3 || changes(word) >= 0.45 * word.length
}

/** The parts of a word that are numbers or ids: `job-4821` is `job-#`. */
function pieces(word: string): string {
  return word
    .replace(UUID, '#')
    .replace(SIGN, '')
    .replace(POD, '-#')
    .replace(/[A-Za-z0-9]+/g, piece)
    .replace(/#(?:\.#)+/g, '#')
}

function piece(run: string): string {
  if (NUMBERED_NAMES.has(run.toLowerCase())) return run
  return isId(run) || AMOUNT.test(run) ? '#' : run.replace(/\d+/g, '#')
}

function isId(run: string): boolean {
  if (!/\d/.test(run) || !/[A-Za-z]/.test(run)) return false
  if (run.length >= 16 || /^0x[0-9a-f]+$/i.test(run)) return true
  if (run.length >= 7 && /^[0-9a-f]+$/i.test(run)) return true
  return changes(run.toLowerCase()) >= 3
}

/** How often a run changes between small letters, capitals and others: words do it once (`utf8`), ids all the time. */
function changes(run: string): number {
  let count = 0
  for (let index = 1; index < run.length; index++) {
    if (sort(run.charCodeAt(index)) !== sort(run.charCodeAt(index - 1))) count++
  }
  return count
}

const sort = (code: number): number => (code >= 97 ? 2 : code >= 65 ? 1 : 0)
