// Messages alone, as they are found in the wild: thrown by wrappers that keep nothing else.
import { type Family, like, type Shape, shape } from './shape.js'

const MESSAGES: readonly (readonly [string, Shape['kind']])[] = [
  ['Service not available', 'transient'],
  ['Encoder is busy', 'transient'],
  ['the operation timed out', 'transient'],
  ['Request failed with status code 500', 'transient'],
  ['Failed to load resource: the server responded with a status of 502 (Bad Gateway)', 'transient'],
  ['HTTP Error 503: Service Unavailable', 'transient'],
  ['response code 504', 'transient'],
  ['Invalid response from upstream', 'transient'],
  ['database is in recovery mode', 'transient'],
  ['another process holds the lock, retry later', 'transient'],
  ['Quota exceeded for project', 'rate_limited'],
  ['You have reached your API limit for today', 'rate_limited'],
  ['Throttled: slow down', 'rate_limited'],
  ['HTTP 429', 'rate_limited'],
  ['unable to connect to the remote server', 'network'],
  ['Could not resolve host: api.example.com', 'network'],
  ['Connection is closed.', 'network'],
  ['Host not found', 'network'],
  ['lost connection to the peer', 'network'],
  ['Disk quota exceeded', 'system'],
  ['FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory', 'system'],
  ['No space left on device', 'system'],
  ['403 Forbidden', 'authentication'],
  ['jwt expired', 'authentication'],
  ['Invalid API key provided', 'authentication'],
  ['Incorrect username or password', 'authentication'],
  ['Missing required field: name', 'validation'],
  ['amount must be positive', 'validation'],
  ['Unsupported codec', 'permanent'],
  ['Unknown operation: resize', 'permanent'],
  ['No such file or directory', 'permanent'],
  ['User does not exist', 'permanent'],
  ['null value in column "a" violates not-null constraint', 'permanent'],
  ['moov atom not found', 'permanent'],
]

// A name that hints at one thing, a text that says another.
const STARTING = 'No provider found for ITL.Core/ResourceGroup'

export const text: Family = {
  family: 'text alone',
  shapes: [
    ...MESSAGES.map(([message, kind]) => shape(message, kind, () => new Error(message), 'the text says')),
    shape('before the name of the error', 'transient', () => like('ProviderNotFoundError', STARTING), 'the text says'),
    shape('nothing: then its name', 'permanent', () => like('ProviderNotFoundError', 'X'), 'by its name'),
  ],
}
