// As much of an AMQP 0-9-1 broker as it takes to refuse something: it opens a connection and a channel, then answers
// the first real request with the close it was told to give. By hand, for a broker cannot be made to fail on demand.
import type { Socket } from 'node:net'
import { withSocketServer } from './lines.js'

export interface Refusal {
  /** What is closed, and when. */
  readonly at: 'login' | 'open' | 'channel' | 'connection' | 'hang up'
  readonly code: number
  readonly text: string
}

const FRAME_END = 0xce
const METHOD = 1
const HANG_UP = Buffer.alloc(0)

export const withBroker = <T>(refusal: Refusal, use: (url: string) => Promise<T>): Promise<T> =>
  withSocketServer(
    socket => serve(socket, refusal),
    port => use(`amqp://guest:guest@127.0.0.1:${port}?heartbeat=0`),
  )

function serve(socket: Socket, refusal: Refusal): void {
  let data = Buffer.alloc(0)
  let greeted = false
  socket.on('data', chunk => {
    data = Buffer.concat([data, chunk])
    if (!greeted) {
      if (data.length < 8) return
      greeted = true
      data = data.subarray(8)
      // Start: version 0-9, no properties, the mechanisms and locales.
      socket.write(frame(0, 10, 10, Buffer.from([0, 9]), long(''), long('PLAIN'), long('en_US')))
    }
    while (data.length >= 7 && data.length >= 8 + data.readUInt32BE(3)) {
      const size = data.readUInt32BE(3)
      const isMethod = data[0] === METHOD
      const [channel, classId, methodId] = [data.readUInt16BE(1), data.readUInt16BE(7), data.readUInt16BE(9)]
      data = data.subarray(8 + size)
      const answer = isMethod ? answerTo(refusal, channel, classId, methodId) : undefined
      if (answer === HANG_UP) return void socket.destroy()
      if (answer) socket.write(answer)
    }
  })
}

function answerTo({ at, code, text }: Refusal, channel: number, classId: number, methodId: number): Buffer | undefined {
  const close = Buffer.concat([shortInt(code), short(text), shortInt(classId), shortInt(methodId)])
  switch (`${classId}.${methodId}`) {
    case '10.11': // StartOk
      if (at === 'login') return frame(0, 10, 50, close)
      return frame(0, 10, 30, shortInt(10), Buffer.from([0, 2, 0, 0]), shortInt(0))
    case '10.31': // TuneOk
    case '10.51': // CloseOk
    case '20.41':
      return undefined
    case '10.40': // Open
      return at === 'open' ? frame(0, 10, 50, close) : frame(0, 10, 41, short(''))
    case '10.50': // Close
      return frame(0, 10, 51)
    case '20.10': // Channel.Open
      return frame(channel, 20, 11, long(''))
    default:
      if (at === 'hang up') return HANG_UP
      return at === 'channel' ? frame(channel, 20, 40, close) : frame(0, 10, 50, close)
  }
}

function frame(channel: number, classId: number, methodId: number, ...fields: Buffer[]): Buffer {
  const payload = Buffer.concat([shortInt(classId), shortInt(methodId), ...fields])
  const head = Buffer.alloc(7)
  head.writeUInt8(METHOD, 0)
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, Buffer.from([FRAME_END])])
}

function shortInt(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

const short = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])

function long(text: string): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(text.length)
  return Buffer.concat([size, Buffer.from(text)])
}
