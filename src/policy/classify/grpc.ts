// gRPC status codes, as @grpc/grpc-js, Google's clients, nice-grpc and Connect give them: a small number in `code`,
// which alone could be anyone's, beside fields that others do not have.
import type { Kind } from '../../domain/failure.js'
import { isObject, prop } from '../read.js'
import type { Source } from './evidence.js'
import type { Facts } from './facts.js'
import { nodeCodeIn } from './node.js'

const CODES: readonly (readonly [string, Kind] | undefined)[] = [
  undefined,
  ['CANCELLED', 'transient'],
  ['UNKNOWN', 'transient'],
  ['INVALID_ARGUMENT', 'validation'],
  ['DEADLINE_EXCEEDED', 'transient'],
  ['NOT_FOUND', 'permanent'],
  ['ALREADY_EXISTS', 'permanent'],
  ['PERMISSION_DENIED', 'authentication'],
  ['RESOURCE_EXHAUSTED', 'rate_limited'],
  ['FAILED_PRECONDITION', 'permanent'],
  ['ABORTED', 'transient'],
  ['OUT_OF_RANGE', 'validation'],
  ['UNIMPLEMENTED', 'permanent'],
  ['INTERNAL', 'transient'],
  ['UNAVAILABLE', 'transient'],
  ['DATA_LOSS', 'permanent'],
  ['UNAUTHENTICATED', 'authentication'],
]

export const grpc: Source = facts => {
  const { code, message } = facts
  const found = code !== undefined && /^\d{1,2}$/.test(code) ? CODES[Number(code)] : undefined
  if (!found || !isGrpc(facts, found[0])) return undefined
  const [name, kind] = found
  // Clients report a server that cannot be reached as UNAVAILABLE too; the text has the system's own code.
  const network = name === 'UNAVAILABLE' ? nodeCodeIn(message) : undefined
  return network
    ? { kind: network.kind, because: `gRPC status ${name}, with ${network.code}` }
    : { kind, because: `gRPC status ${name}` }
}

function isGrpc({ error, type, message }: Facts, name: string): boolean {
  if (type === 'ConnectError') return true
  return typeof prop(error, 'details') === 'string' && (isObject(prop(error, 'metadata')) || message.includes(name))
}
