// amqplib against a broker that refuses (servers/amqp.ts), as RabbitMQ words its refusals.
import { connect } from 'amqplib'
import { type Refusal, withBroker } from '../servers/amqp.js'
import { closedPort, withSocketServer } from '../servers/lines.js'
import { caught, type Family, like, shape } from './shape.js'

const connecting = (refusal: Refusal) => withBroker(refusal, url => caught(() => connect(url)))

/** Opens a channel, asks for a queue, and is refused. */
const asking = (refusal: Refusal) =>
  withBroker(refusal, async url => {
    const connection = await connect(url)
    connection.on('error', () => {})
    const channel = await connection.createChannel()
    channel.on('error', () => {})
    return caught(() => channel.checkQueue('jobs'))
  })

/** What the connection itself tells when it is refused. */
const told = (refusal: Refusal) =>
  withBroker(refusal, async url => {
    const connection = await connect(url)
    // Not its 'error': a connection that an operator closes has none.
    const error = new Promise(done => connection.once('close', done))
    connection.on('error', () => {})
    const channel = await connection.createChannel()
    channel.on('error', () => {})
    channel.checkQueue('jobs').catch(() => {})
    return error
  })

const NOT_FOUND = { code: 404, text: "NOT_FOUND - no queue 'jobs' in vhost '/'" }

export const amqp: Family = {
  family: 'AMQP',
  shapes: [
    shape('a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => connect(`amqp://127.0.0.1:${port}`))
    }),
    shape('hung up during the handshake', 'network', () =>
      withSocketServer(
        socket => socket.once('data', () => socket.end()),
        port => caught(() => connect(`amqp://127.0.0.1:${port}`)),
      ),
    ),
    shape('wrong password', 'authentication', () =>
      connecting({
        at: 'login',
        code: 403,
        text: 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN',
      }),
    ),
    shape('a virtual host that is not there, of which the client tells nothing', 'network', () =>
      connecting({ at: 'open', code: 530, text: 'NOT_ALLOWED - vhost nowhere not found' }),
    ),
    shape('a queue that is not there', 'permanent', () => asking({ at: 'channel', ...NOT_FOUND })),
    shape('a queue declared otherwise', 'permanent', () =>
      asking({ at: 'channel', code: 406, text: "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'jobs'" }),
    ),
    shape("somebody's exclusive queue", 'transient', () =>
      asking({
        at: 'channel',
        code: 405,
        text: "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'jobs'",
      }),
    ),
    shape('no permission', 'authentication', () =>
      asking({ at: 'channel', code: 403, text: "ACCESS_REFUSED - access to queue 'jobs' refused for user 'guest'" }),
    ),
    shape('the operator closes the connection', 'network', () =>
      told({
        at: 'connection',
        code: 320,
        text: 'CONNECTION_FORCED - broker forced connection closure with reason shutdown',
      }),
    ),
    shape('the broker has an error of its own', 'transient', () =>
      told({ at: 'connection', code: 541, text: 'INTERNAL_ERROR' }),
    ),
    shape('the broker is out of resources', 'system', () =>
      told({ at: 'connection', code: 506, text: 'RESOURCE_ERROR - connection limit reached' }),
    ),
    shape('the broker does not know the method', 'permanent', () =>
      told({ at: 'connection', code: 503, text: 'COMMAND_INVALID - unimplemented method' }),
    ),
    shape('a frame that came out wrong', 'network', () =>
      told({ at: 'connection', code: 501, text: 'FRAME_ERROR - type 2, all octets = <<>>' }),
    ),
    shape('the request that died with its channel', 'network', () =>
      withBroker({ at: 'hang up', code: 0, text: '' }, async url => {
        const connection = await connect(url)
        connection.on('error', () => {})
        const channel = await connection.createChannel()
        return caught(() => channel.checkQueue('jobs'))
      }),
    ),
    shape('a channel used after it was closed', 'network', () =>
      withBroker({ at: 'channel', ...NOT_FOUND }, async url => {
        const connection = await connect(url)
        connection.on('error', () => {})
        const channel = await connection.createChannel()
        channel.on('error', () => {})
        await channel.checkQueue('jobs').catch(() => {})
        return caught(() => channel.publish('', 'jobs', Buffer.from('x')))
      }),
    ),
    shape('a connection used after it was closed', 'network', () =>
      withBroker({ at: 'channel', ...NOT_FOUND }, async url => {
        const connection = await connect(url)
        await connection.close()
        return caught(() => connection.createChannel())
      }),
    ),
    shape('a publish that was not confirmed', 'transient', () => like('Error', 'message nacked')),
    shape('no heartbeat', 'network', () => like('Error', 'Heartbeat timeout')),
  ],
}
