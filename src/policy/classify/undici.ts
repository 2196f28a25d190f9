// undici, the client under Node's fetch. `fetch failed` itself says little: its cause does (see weak.ts).
import { byWord, type Source } from './evidence.js'

const CODES = byWord({
  network: `UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH UND_ERR_INFO UND_ERR_PRX_TLS UND_ERR`,
  transient: 'UND_ERR_DESTROYED UND_ERR_CLOSED UND_ERR_REQ_RETRY',
  permanent: `UND_ERR_INVALID_ARG UND_ERR_INVALID_RETURN_VALUE UND_ERR_NOT_SUPPORTED UND_ERR_HEADERS_OVERFLOW
    UND_ERR_REQ_CONTENT_LENGTH_MISMATCH UND_ERR_RES_EXCEEDED_MAX_SIZE UND_ERR_BPL_MISSING_UPSTREAM`,
})

export const undici: Source = ({ code }) => {
  const kind = code === undefined ? undefined : CODES.get(code)
  return kind && { kind, because: `undici code ${code}` }
}
