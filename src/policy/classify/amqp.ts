// AMQP reply codes, as amqplib gives them. Looked at before the HTTP status: the numbers overlap (404, 503) and
// do not mean the same.
import type { Kind } from '../../domain/failure.js'
import { prop } from '../read.js'
import type { Source } from './evidence.js'

const REPLIES: Readonly<Record<string, readonly [Kind, string]>> = {
  '311': ['validation', 'content too large'],
  // Whoever should take it may be starting.
  '312': ['transient', 'no route'],
  '313': ['transient', 'no consumers'],
  '320': ['network', 'connection forced'],
  '402': ['permanent', 'invalid path'],
  '403': ['authentication', 'access refused'],
  '404': ['permanent', 'not found'],
  '405': ['transient', 'resource locked'],
  '406': ['permanent', 'precondition failed'],
  '501': ['network', 'frame error'],
  '502': ['permanent', 'syntax error'],
  '503': ['permanent', 'command invalid'],
  '504': ['network', 'channel error'],
  '505': ['network', 'unexpected frame'],
  '506': ['system', 'resource error'],
  // RabbitMQ: this user may not use this virtual host.
  '530': ['authentication', 'not allowed'],
  '540': ['permanent', 'not implemented'],
  '541': ['transient', 'internal error'],
}

const OPENINGS = ['Channel closed', 'Connection closed', 'Connection closing', 'Handshake terminated']
/** A handshake that was refused has its reply only in the text: `… by server: 403 (ACCESS-REFUSED) with …`. */
const REPLY_IN_TEXT = /^.{1,40}: (\d{3}) \(/
/** The connection or channel went while something was asked of it. */
const ENDED = ['Channel ended', 'Heartbeat timeout', 'Expected ConnectionOpenOk; got <ConnectionClose']

export const amqp: Source = ({ error, type, message, code }) => {
  const opening = OPENINGS.some(words => message.startsWith(words))
  // Used after it was closed: a new connection heals it.
  if (type === 'IllegalOperationError' && opening)
    return { kind: 'network', because: 'AMQP channel or connection closed' }
  const fromServer =
    opening || (typeof prop(error, 'classId') === 'number' && typeof prop(error, 'methodId') === 'number')
  const number = fromServer ? (code ?? REPLY_IN_TEXT.exec(message)?.[1]) : undefined
  const reply = number !== undefined && Object.hasOwn(REPLIES, number) ? REPLIES[number] : undefined
  if (reply) return { kind: reply[0], because: `AMQP reply ${number} (${reply[1]})` }
  if (ENDED.some(words => message.startsWith(words)))
    return { kind: 'network', because: 'AMQP channel or connection ended' }
  return undefined
}
