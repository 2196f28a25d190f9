// gRPC, as @grpc/grpc-js, Google's and nice-grpc's clients make its errors: the number in `code` is no HTTP status.
import { type Family, like, type Shape, shape } from './shape.js'

const status = (code: number, name: string, details: string) =>
  like('Error', `${code} ${name}: ${details}`, { code, details, metadata: { internalRepr: new Map(), options: {} } })

const CODES: readonly (readonly [number, string, string, Shape['kind']])[] = [
  [1, 'CANCELLED', 'Call cancelled', 'transient'],
  [2, 'UNKNOWN', 'Stream removed', 'transient'],
  [3, 'INVALID_ARGUMENT', 'name: cannot be blank', 'validation'],
  [4, 'DEADLINE_EXCEEDED', 'Deadline exceeded after 5.002s', 'transient'],
  [5, 'NOT_FOUND', 'Topic projects/a/topics/b', 'permanent'],
  [6, 'ALREADY_EXISTS', 'Entity', 'permanent'],
  [7, 'PERMISSION_DENIED', 'The caller lacks a role', 'authentication'],
  [8, 'RESOURCE_EXHAUSTED', 'Quota for reads used up', 'rate_limited'],
  [9, 'FAILED_PRECONDITION', 'The query requires an index', 'permanent'],
  [10, 'ABORTED', 'Too much contention on these documents', 'transient'],
  [11, 'OUT_OF_RANGE', 'offset', 'validation'],
  [12, 'UNIMPLEMENTED', 'Method', 'permanent'],
  [13, 'INTERNAL', 'Received RST_STREAM with code 2', 'transient'],
  [14, 'UNAVAILABLE', 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:50051', 'network'],
  [14, 'UNAVAILABLE', 'The service is currently down', 'transient'],
  [15, 'DATA_LOSS', 'Checksum', 'permanent'],
  [16, 'UNAUTHENTICATED', 'Request had wrong authentication credentials', 'authentication'],
]

export const grpc: Family = {
  family: 'gRPC',
  shapes: [
    ...CODES.map(([code, name, details, kind]) =>
      shape(`${code} ${name}: ${details}`, kind, () => status(code, name, details), 'gRPC'),
    ),
    shape('nice-grpc: not found', 'permanent', () =>
      like('ClientError', '/a.B/Get NOT_FOUND: no such thing', { code: 5, path: '/a.B/Get', details: 'no such thing' }),
    ),
    shape('connect: unavailable', 'transient', () =>
      like('ConnectError', '[unavailable] try another one', { code: 14, rawMessage: 'try another one' }),
    ),
    shape('not gRPC: a small number as code', 'transient', () => like('Error', 'it failed', { code: 5 })),
  ],
}
