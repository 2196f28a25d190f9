// What the SDK throws, as what it means for a job: its kind, and words for a person who does not know the SDK.
import { AuthenticationError, NetworkError, PermanentError, TransientError } from 'redrive'
import { STORAGE_SERVICE } from '../storage.js'

const NOT_ALLOWED = new Set([401, 403])
const UNREACHED =
  /^(?:E(?:CONN|PIPE|HOST|NET|TIMEDOUT|AI_AGAIN|NOTFOUND)|(?:Timeout|Abort)Error$|ERR_STREAM_PREMATURE_CLOSE$|ABORT_ERR$)/

export function s3Failure(error: unknown, key: string, name: string): Error {
  const { name: type = '', code = '', message = '', $metadata } = (error ?? {}) as SdkError
  const status = $metadata?.httpStatusCode
  const what = `${JSON.stringify(key)} in ${name}`
  const options = { cause: error, service: STORAGE_SERVICE }

  if (type === 'NoSuchBucket')
    return new PermanentError(`There is no bucket ${name}`, { ...options, code: 'NO_SUCH_BUCKET' })
  if (type === 'NoSuchKey' || status === 404)
    return new PermanentError(`There is no object ${what}`, { ...options, code: 'NOT_FOUND' })
  if (type === 'CredentialsProviderError' || (status !== undefined && NOT_ALLOWED.has(status)))
    return new AuthenticationError(`${name} does not let us use ${what}: ${type || message}`, options)
  if (status === 412) return new TransientError(`${what} was replaced while it was read`, options)
  if (status === undefined && [code, type].some(word => UNREACHED.test(word)))
    return new NetworkError(`${name} does not answer (${code || message || type})`, options)
  // Throttling, 5xx and the rest: the classifier of Redrive knows the names of S3.
  return new Error(`${name} failed on ${what}: ${type} ${message}`.trim(), { cause: error })
}

interface SdkError {
  readonly name?: string
  readonly code?: string
  readonly message?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}
