// AWS SDK, and the S3-compatible stores that speak its names. Looked at before the HTTP status, which says less:
// throttling and expired tokens both come as 400.
import { isObject, prop, textProp } from '../read.js'
import { byWord, type Source } from './evidence.js'

/** Names nobody else uses: they count on any error, as its name or its code. */
const NAMES = byWord({
  rate_limited: `ThrottlingException Throttling ThrottledException RequestThrottled RequestThrottledException SlowDown
    TooManyRequestsException RequestLimitExceeded BandwidthLimitExceeded EC2ThrottledException
    ProvisionedThroughputExceededException PriorRequestNotComplete LimitExceededException`,
  transient: `RequestTimeoutException ServiceUnavailableException InternalFailure InternalServerException
    TransactionInProgressException IDPCommunicationError IDPCommunicationErrorException BadDigest
    ModelNotReadyException KMSInternalException TransactionConflictException ReplicatedWriteConflictException`,
  system: 'RequestTimeTooSkewed InsufficientCapacityException XMinioStorageFull XMinioServerNotInitialized',
  authentication: `AccessDenied AccessDeniedException ExpiredToken ExpiredTokenException InvalidAccessKeyId
    SignatureDoesNotMatch UnrecognizedClientException InvalidClientTokenId InvalidSignatureException
    CredentialsProviderError TokenRefreshRequired MissingAuthenticationToken MissingAuthenticationTokenException
    AuthFailure UnauthorizedOperation NotAuthorizedException OptInRequired`,
  permanent: `NoSuchKey NoSuchBucket NoSuchUpload NoSuchVersion ResourceNotFoundException BucketAlreadyExists
    BucketAlreadyOwnedByYou BucketNotEmpty ConditionalCheckFailedException InvalidObjectState ObjectNotInActiveTierError
    QueueDoesNotExist QueueDeletedRecently MessageRejected TransactionCanceledException`,
  validation: `ValidationException InvalidParameterValue InvalidParameterValueException InvalidParameterException
    MalformedXML EntityTooLarge EntityTooSmall MissingParameter InvalidBucketName KeyTooLongError
    SerializationException`,
})

/** Names others use too: they count only on an error that the SDK made. */
const SDK_NAMES = byWord({
  transient: 'InternalError InternalServerError RequestTimeout ServiceUnavailable OperationAborted',
  authentication: 'InvalidToken NotAuthorized Forbidden RequestExpired',
  permanent: 'NotFound PreconditionFailed MethodNotAllowed',
  validation: 'ValidationError InvalidRequest InvalidArgument InvalidDigest BadRequest',
})

/** DynamoDB lists in the text why each item of a transaction was refused. */
const HEALING_REASON = /\[[^\]]{0,2000}\b(?:TransactionConflict|ThrottlingError|ProvisionedThroughputExceeded)\b/

const SDK_MARKS = ['$metadata', '$fault', '$service', '$retryable']

export const aws: Source = ({ error, type, code, message }) => {
  if (type === 'TransactionCanceledException' && HEALING_REASON.test(message))
    return { kind: 'transient', because: `AWS error ${type}: it met another transaction, or was throttled` }
  const madeBySdk = SDK_MARKS.some(mark => prop(error, mark) !== undefined)
  for (const name of [type, code, textProp(error, 'Code')]) {
    if (name === undefined) continue
    const kind = NAMES.get(name) ?? (madeBySdk ? SDK_NAMES.get(name) : undefined)
    if (kind) return { kind, because: `AWS error ${name}` }
  }
  const retryable = prop(error, '$retryable')
  if (!isObject(retryable)) return undefined
  return prop(retryable, 'throttling') === true
    ? { kind: 'rate_limited', because: `AWS error ${type}, marked as throttling` }
    : { kind: 'transient', because: `AWS error ${type}, marked as retryable` }
}
