// Error codes of Node and the operating system.
import type { Kind } from '../../domain/failure.js'
import { byWord, type Source } from './evidence.js'

const CODES = byWord({
  network: `ECONNRESET ECONNREFUSED ECONNABORTED ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA ETIMEDOUT ESOCKETTIMEDOUT EPIPE
    EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL ENOTCONN EPROTO ETIMEOUT ESERVFAIL EREFUSED
    ENODATA EBADRESP ENONAME ERR_NETWORK ERR_SOCKET_CLOSED ERR_STREAM_DESTROYED
    ERR_SOCKET_CONNECTION_TIMEOUT ERR_STREAM_PREMATURE_CLOSE ERR_HTTP2_STREAM_ERROR ERR_HTTP2_SESSION_ERROR
    ERR_HTTP2_ERROR ERR_HTTP2_GOAWAY_SESSION ERR_HTTP2_INVALID_SESSION ERR_HTTP2_STREAM_CANCEL ERR_TLS_HANDSHAKE_TIMEOUT
    ERR_HTTP_REQUEST_TIMEOUT`,
  system: `ENOSPC EMFILE ENFILE ENOMEM EDQUOT EIO EROFS ENOBUFS EADDRINUSE ERR_WORKER_OUT_OF_MEMORY
    ERR_MEMORY_ALLOCATION_FAILED ERR_IPC_CHANNEL_CLOSED`,
  transient: 'EAGAIN EBUSY ETXTBSY EDEADLK EINTR ECANCELED EOPENBREAKER',
  permanent: `ENOENT EACCES EPERM EEXIST EISDIR ENOTDIR ENOTEMPTY ENAMETOOLONG ELOOP EXDEV EINVAL EBADF EFBIG ENOEXEC
    ENOTSUP EOPNOTSUPP ENOSYS ERANGE ERR_OUT_OF_RANGE ERR_ASSERTION ERR_STRING_TOO_LONG ERR_BUFFER_TOO_LARGE
    ERR_FS_FILE_TOO_LARGE MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND ERR_UNKNOWN_FILE_EXTENSION ERR_REQUIRE_ESM
    ERR_UNSUPPORTED_DIR_IMPORT ERR_METHOD_NOT_IMPLEMENTED ERR_CHILD_PROCESS_STDIO_MAXBUFFER Z_DATA_ERROR ERR_TOO_MANY_REDIRECTS ERR_FR_TOO_MANY_REDIRECTS`,
  validation: 'ERR_INVALID_URL ERR_INVALID_URI',
  // The other side's certificate is not trusted: no retry changes that.
  authentication: `CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED CERT_UNTRUSTED DEPTH_ZERO_SELF_SIGNED_CERT
    SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    UNABLE_TO_VERIFY_LEAF_SIGNATURE ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH CERT_SIGNATURE_FAILURE
    CERT_REJECTED INVALID_CA`,
})

const PREFIXES: readonly (readonly [string, Kind])[] = [
  // The other side sent something that is not HTTP: most often a connection cut in the middle.
  ['HPE_', 'network'],
  // Nor TLS, or not one that we speak.
  ['ERR_SSL_', 'network'],
  ['ERR_CRYPTO_', 'permanent'],
  ['ERR_OSSL_', 'permanent'],
  ['ERR_INVALID_', 'permanent'],
  ['ERR_MISSING_', 'permanent'],
]

/** A code of the operating system as it stands in texts: `connect ECONNREFUSED 127.0.0.1:5432`. */
const IN_TEXT = /\b(?:E[A-Z]{2,15}(?:_[A-Z]{2,15})?)\b/g

/** The first code in a text that says something. */
export function nodeCodeIn(text: string): { readonly code: string; readonly kind: Kind } | undefined {
  for (const [code] of text.matchAll(IN_TEXT)) {
    const kind = CODES.get(code)
    if (kind) return { code, kind }
  }
  return undefined
}

export const node: Source = ({ code }) => {
  if (code === undefined) return undefined
  const kind = CODES.get(code) ?? PREFIXES.find(([prefix]) => code.startsWith(prefix))?.[1]
  return kind && { kind, because: `Node code ${code}` }
}
