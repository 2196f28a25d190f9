// The AWS SDK: S3 for real against answers as S3, MinIO and others give them; other services as the SDK builds theirs.
import {
  GetObjectCommand,
  HeadObjectCommand,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { type Answer, withHttpServer } from '../servers/http.js'
import { closedPort } from '../servers/lines.js'
import { caught, type Family, like, shape } from './shape.js'

const client = (endpoint: string, requestTimeout = 5000) =>
  new S3Client({
    endpoint,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    forcePathStyle: true,
    maxAttempts: 1,
    requestHandler: { requestTimeout, throwOnRequestTimeout: true },
  })

const at = { Bucket: 'photos', Key: 'a.png' }

const s3 = (status: number, code: string, message = code, headers: Answer['headers'] = {}) =>
  withHttpServer(url => caught(() => client(url).send(new GetObjectCommand(at))), {
    status,
    headers: { 'content-type': 'application/xml', 'x-amz-request-id': '4442587FB7D0A2F9', ...headers },
    body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`,
  })

const head = (status: number) =>
  withHttpServer(url => caught(() => client(url).send(new HeadObjectCommand(at))), { status, body: '' })

/** As every client of the SDK builds what a service answered. */
const service = (name: string, httpStatusCode: number, message = name, fields: object = {}) =>
  Object.assign(
    new S3ServiceException({
      name,
      message,
      $fault: httpStatusCode < 500 ? 'client' : 'server',
      $metadata: { httpStatusCode },
    }),
    fields,
  )

export const aws: Family = {
  family: 'AWS SDK and S3',
  shapes: [
    shape('S3: no such key', 'permanent', () => s3(404, 'NoSuchKey')),
    shape('S3: no such bucket', 'permanent', () => s3(404, 'NoSuchBucket')),
    shape('S3: no such key, by class', 'permanent', () => new NoSuchKey({ message: 'gone', $metadata: {} })),
    shape('S3: access denied', 'authentication', () => s3(403, 'AccessDenied', 'Access Denied')),
    shape('S3: wrong key id', 'authentication', () => s3(403, 'InvalidAccessKeyId')),
    shape('S3: wrong secret', 'authentication', () => s3(403, 'SignatureDoesNotMatch')),
    shape('S3: expired token', 'authentication', () => s3(400, 'ExpiredToken')),
    shape('S3: clocks differ', 'system', () => s3(403, 'RequestTimeTooSkewed')),
    shape('S3: slow down', 'rate_limited', () => s3(503, 'SlowDown', 'Please reduce your request rate.')),
    shape('S3: internal error', 'transient', () => s3(500, 'InternalError')),
    shape('S3: unavailable', 'transient', () => s3(503, 'ServiceUnavailable')),
    shape('S3: our upload took too long', 'transient', () => s3(400, 'RequestTimeout')),
    shape('S3: operation aborted', 'transient', () => s3(409, 'OperationAborted')),
    shape('S3: too large', 'validation', () => s3(400, 'EntityTooLarge')),
    shape('S3: bucket name', 'validation', () => s3(400, 'InvalidBucketName')),
    shape('S3: precondition', 'permanent', () => s3(412, 'PreconditionFailed')),
    shape('S3: archived', 'permanent', () => s3(403, 'InvalidObjectState')),
    shape('S3: a range that is not there', 'validation', () => s3(416, 'InvalidRange')),
    shape('S3: HTML from a proxy', 'transient', () =>
      withHttpServer(url => caught(() => client(url).send(new GetObjectCommand(at))), {
        status: 502,
        headers: { 'content-type': 'text/html' },
        body: '<html><body>Bad Gateway</body></html>',
      }),
    ),
    shape('S3: HEAD, not found', 'permanent', () => head(404)),
    shape('S3: HEAD, forbidden', 'authentication', () => head(403)),
    shape('S3: HEAD, unavailable', 'transient', () => head(503)),
    shape('S3: a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => client(`http://127.0.0.1:${port}`).send(new PutObjectCommand({ ...at, Body: 'x' })))
    }),
    shape('S3: cut off', 'network', () =>
      withHttpServer(url => caught(() => client(`${url}/cut`).send(new GetObjectCommand(at)))),
    ),
    shape('S3: no credentials', 'authentication', () =>
      like('CredentialsProviderError', 'Could not load credentials from any providers', { tryNextLink: false }),
    ),
    shape('S3: aborted', 'transient', () =>
      withHttpServer(url =>
        caught(() => client(url).send(new GetObjectCommand(at), { abortSignal: AbortSignal.abort() })),
      ),
    ),
    shape('MinIO: full', 'system', () => s3(507, 'XMinioStorageFull')),
    shape('MinIO: starting', 'system', () => s3(503, 'XMinioServerNotInitialized')),
    shape('minio client: no such key', 'permanent', () =>
      like('S3Error', 'The specified key does not exist.', { code: 'NoSuchKey', key: 'a.png' }),
    ),

    shape('throttled', 'rate_limited', () => service('ThrottlingException', 400, 'Rate exceeded')),
    shape('DynamoDB: over its throughput', 'rate_limited', () =>
      service('ProvisionedThroughputExceededException', 400),
    ),
    shape('DynamoDB: condition', 'permanent', () => service('ConditionalCheckFailedException', 400)),
    shape('DynamoDB: transaction conflict', 'transient', () => service('TransactionConflictException', 400)),
    shape('DynamoDB: transaction cancelled by a conflict', 'transient', () =>
      service(
        'TransactionCanceledException',
        400,
        'Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict, None]',
        { CancellationReasons: [{ Code: 'TransactionConflict' }, { Code: 'None' }] },
      ),
    ),
    shape('DynamoDB: transaction cancelled by a condition', 'permanent', () =>
      service(
        'TransactionCanceledException',
        400,
        'Transaction cancelled, please refer cancellation reasons for specific reasons [ConditionalCheckFailed]',
        { CancellationReasons: [{ Code: 'ConditionalCheckFailed' }] },
      ),
    ),
    shape('SQS: no such queue', 'permanent', () => service('QueueDoesNotExist', 400)),
    shape('Lambda: too many requests', 'rate_limited', () => service('TooManyRequestsException', 429)),
    shape('SES: message rejected', 'permanent', () => service('MessageRejected', 400, 'Email address is not verified')),
    shape('SSM: validation', 'validation', () => service('ValidationException', 400)),
    shape('KMS: denied', 'authentication', () => service('AccessDeniedException', 400)),
    shape('a service in trouble', 'transient', () => service('InternalServerException', 500)),
    shape('an error nobody knows, marked as retryable', 'transient', () =>
      service('Odd', 400, 'odd', { $retryable: {} }),
    ),
    shape('SDK v2: throttled', 'rate_limited', () =>
      like('ThrottlingException', 'Rate exceeded', { code: 'ThrottlingException', statusCode: 400, retryable: true }),
    ),
    shape('SDK v2: networking', 'network', () =>
      like('NetworkingError', 'socket hang up', { code: 'NetworkingError', errno: 'ECONNRESET', retryable: true }),
    ),
    shape('SDK: took too long', 'network', () =>
      withHttpServer(url => caught(() => client(`${url}/silent`, 30).send(new GetObjectCommand(at)))),
    ),
  ],
}
