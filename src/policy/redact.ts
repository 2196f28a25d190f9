// Secrets in what people are shown: by the name they stand under, and by how they look. Pure, and linear in the length of
// the text: every repetition is bounded or ends where another cannot begin.
import type { Json } from '../domain/json.js'

export const REDACTED = '[redacted]'

/** Parts of names, as they are written without case, `-`, `_`, `.` and blanks. */
const SECRET_PARTS = [
  'password',
  'passwd',
  'passphrase',
  'passcode',
  'secret',
  'token',
  'authorization',
  'authentication',
  'cookie',
  'credential',
  'apikey',
  'accesskey',
  'privatekey',
  'signature',
  'sessionid',
  'creditcard',
  'cardnumber',
] as const
const SECRET_NAMES = new Set([
  'auth',
  'pass',
  'pwd',
  'pin',
  'otp',
  'cvv',
  'cvc',
  'ssn',
  'jwt',
  'bearer',
  'session',
  'sid',
])

export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[-_.\s]/g, '')
  return SECRET_NAMES.has(plain) || plain.endsWith('key') || SECRET_PARTS.some(part => plain.includes(part))
}

/** A whole secret, wherever it stands. */
const LOOKS_SECRET: readonly RegExp[] = [
  // PEM; one that was cut has no end.
  /-----BEGIN [A-Z0-9 ]{1,40}-----[^-]{0,20000}(?:-----END [A-Z0-9 ]{1,40}-----)?/g,
  // JWT. It begins where a word does, so that no word is looked at twice.
  /(?<![\w-])eyJ[\w-]{5,}\.[\w-]{2,}(?:\.[\w-]*)?/g,
  // AWS, Google, GitHub, GitLab, Slack, Stripe, npm, SendGrid, OpenAI and the like, and our own.
  /\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{35}/g,
  /\bya29\.[\w-]{20,500}/g,
  /\bgh[pousr]_[A-Za-z0-9]{20,255}/g,
  /\bgithub_pat_\w{20,255}/g,
  /\bglpat-[\w-]{20,100}/g,
  /\bxox[abeoprs]-[\w-]{10,250}/g,
  /\b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,250}/g,
  /\bwhsec_[A-Za-z0-9]{10,250}/g,
  /\bnpm_[A-Za-z0-9]{30,100}/g,
  /\bSG\.[\w-]{16,64}\.[\w-]{16,64}/g,
  /\bsk-[\w-]{20,250}/g,
  /\brdr_[\w-]{20,100}/g,
]

/** What stands before a secret is kept, as group 1. */
const COMES_BEFORE: readonly RegExp[] = [
  // https://user:password@host
  /(:\/\/[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)/g,
  /\b((?:Bearer|Basic|Digest)\s)[\w.~+/=-]{6,8000}/gi,
]

// password=…, "api_key": "…", Authorization: …
const ASSIGNING = /([A-Za-z][\w.-]{0,60})\\?["']?\s{0,3}[:=]\s{0,3}\\?/g
const ASSIGNED = /"[^"\n]*"?|'[^'\n]*'?|[^\s"',;&)}\]]+/y
/** A header of several words: Authorization: Token …, Cookie: a=…; b=… */
const HEADER = /^(?:(?:proxy-)?authorization|(?:set-)?cookie)$/i
const ASSIGNED_TO_HEADER = /"[^"\n]*"?|'[^'\n]*'?|[^\n"']+/y

/** The shortest that any pattern takes, if nothing is assigned. */
const SHORTEST = 11
const IS_TIME = /^\d{4}-\d\d-\d\dT[\d:.]{1,20}Z$/

// Most texts of an answer are names and times: they are let go at a glance, which halves the time a page takes here.
const cannotHide = (text: string): boolean =>
  (text.length < SHORTEST && !text.includes(':') && !text.includes('=')) || IS_TIME.test(text)

export function redactText(text: string): string {
  if (cannotHide(text)) return text
  let safe = text
  for (const pattern of LOOKS_SECRET) safe = safe.replace(pattern, REDACTED)
  for (const pattern of COMES_BEFORE) safe = safe.replace(pattern, `$1${REDACTED}`)
  return withoutAssigned(safe)
}

/** What is assigned to other names is looked into: `refused: password=…`. */
function withoutAssigned(text: string): string {
  let safe = ''
  let done = 0
  for (const { 0: whole, 1: name, index } of text.matchAll(ASSIGNING)) {
    const start = index + whole.length
    if (index < done || !isSecretName(name as string)) continue
    const value = HEADER.test(name as string) ? ASSIGNED_TO_HEADER : ASSIGNED
    if (value === ASSIGNED && text.startsWith(REDACTED, start)) continue
    value.lastIndex = start
    if (!value.test(text)) continue
    safe += text.slice(done, start) + REDACTED
    done = value.lastIndex
  }
  return safe + text.slice(done)
}

/** How deep data is looked into; what is deeper is not shown. */
const DEEPEST = 64

/** Data of others, such as a payload: what stands under a secret's name is not shown, whatever it is. */
export function redactJson(value: Json, depth = 0): Json {
  if (typeof value === 'string') return redactText(value)
  if (value === null || typeof value !== 'object') return value
  if (depth >= DEEPEST) return REDACTED
  if (Array.isArray(value)) return value.map(item => redactJson(item, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      redactText(name),
      isSecretName(name) && inner !== null && inner !== '' ? REDACTED : redactJson(inner, depth + 1),
    ]),
  )
}
