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

export const amqp: Source = ({ error, type, message, code }) => {
  const opening = OPENINGS.some(words => message.startsWith(words))
  // Used after it was closed: a new connection heals it.
  if (type === 'IllegalOperationError' && opening)
    return { kind: 'network', because: 'AMQP channel or connection closed' }
  const fromServer =
    opening || (typeof prop(error, 'classId') === 'number' && typeof prop(error, 'methodId') === 'number')
  const reply = fromServer && code !== undefined ? REPLIES[code] : undefined
  return reply && { kind: reply[0], because: `AMQP reply ${code} (${reply[1]})` }
}
