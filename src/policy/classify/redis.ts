// Redis: a server's error begins with a word in capitals; the clients' own errors have telling names.
import { byWord, type Source } from './evidence.js'

const REPLY_TYPES = new Set(['ReplyError', 'ErrorReply', 'SimpleError', 'BlobError', 'RedisError'])

const REPLIES = byWord({
  transient: `LOADING BUSY READONLY MASTERDOWN CLUSTERDOWN TRYAGAIN MOVED ASK NOREPLICAS NOSCRIPT INPROG NOTREADY
    UNKILLABLE STALE FAILOVER UNBLOCKED`,
  system: 'OOM MISCONF IOERR',
  authentication: 'NOAUTH WRONGPASS NOPERM DENIED',
  permanent: 'WRONGTYPE ERR BUSYGROUP BUSYKEY NOGROUP CROSSSLOT EXECABORT NOPROTO',
})

/** Before version 6 they had no word of their own. */
const LOGIN = ['ERR invalid password', 'ERR AUTH', 'ERR Client sent AUTH', 'ERR operation not permitted']

const CLIENT_ERRORS = byWord({
  transient: 'WatchError ScanIteratorInterruptedError',
  network: `MaxRetriesPerRequestError ClusterAllFailedError ClientClosedError ClientOfflineError ConnectionTimeoutError
    SocketClosedUnexpectedlyError SocketTimeoutError DisconnectsClientError ReconnectStrategyError RootNodesUnavailableError
    MaxCommandRedirectionsError`,
})

export const redis: Source = ({ type, message }) => {
  const client = CLIENT_ERRORS.get(type)
  if (client) return { kind: client, because: `Redis client error ${type}` }
  if (!REPLY_TYPES.has(type)) return undefined
  if (message.startsWith('ERR max number of clients')) return { kind: 'system', because: 'Redis has too many clients' }
  if (LOGIN.some(words => message.startsWith(words)))
    return { kind: 'authentication', because: 'Redis refuses the login' }
  const word = message.slice(0, 40).split(' ', 1)[0] ?? ''
  const kind = REPLIES.get(word)
  return kind && { kind, because: `Redis reply ${word}` }
}
