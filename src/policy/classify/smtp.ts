// SMTP, as nodemailer gives it: the server's reply code where there was a reply, else the client's own code.
import type { Kind } from '../../domain/failure.js'
import { prop, textProp } from '../read.js'
import { byWord, type Source } from './evidence.js'
import { saysRateLimited } from './phrases.js'

const REPLIES = byWord({
  authentication: '530 534 535 538',
  // Commands in the wrong order: a matter of this connection, not of the message.
  transient: '503',
})

/** RFC 5321: every 4yz reply may be tried again, no 5yz. */
const CLASSES = byWord({ transient: '4', permanent: '5' })

const CODES = byWord({
  network: 'ECONNECTION ESOCKET EDNS ETLS EPROXY',
  transient: 'EPROTOCOL ESTREAM EMAXLIMIT',
  authentication: 'EAUTH ENOAUTH EOAUTH2',
  validation: 'EENVELOPE EMAXRECIPIENTS',
  permanent: 'EMESSAGE EREQUIRETLS ECONFIG EFILEACCESS EURLACCESS',
})

export const smtp: Source = ({ error, code, message }) => {
  const reply = prop(error, 'responseCode')
  if (typeof reply === 'number' && textProp(error, 'response') !== undefined) {
    const kind = replyKind(String(reply), message)
    if (kind) return { kind, because: `SMTP reply ${reply}` }
  }
  const kind = code === undefined ? undefined : CODES.get(code)
  return kind && { kind, because: `SMTP client code ${code}` }
}

function replyKind(reply: string, message: string): Kind | undefined {
  const kind = REPLIES.get(reply) ?? CLASSES.get(reply.charAt(0))
  return kind === 'transient' && saysRateLimited(message) ? 'rate_limited' : kind
}
