// nodemailer against a mail server that answers with the given reply at the given command.
import { createTransport } from 'nodemailer'
import { closedPort, withLineServer, withSocketServer } from '../servers/lines.js'
import { caught, type Family, type Shape, shape } from './shape.js'

const mail = { from: 'a@example.org', to: 'b@example.org', subject: 's', text: 't' }

type Step = 'greeting' | 'AUTH' | 'MAIL' | 'RCPT' | 'DATA' | 'end'

/** A server that is content until `step`, where it gives `reply`. */
function script(step: Step, reply: string) {
  let inData = false
  const or = (at: Step, fine: string) => `${step === at ? reply : fine}\r\n`
  return {
    greeting: or('greeting', '220 mail.test ESMTP'),
    answer(line: string): string | undefined {
      if (inData) {
        if (line !== '.') return undefined
        inData = false
        return or('end', '250 2.0.0 Ok: queued')
      }
      const command = line.slice(0, 4).toUpperCase()
      if (command === 'EHLO') return '250-mail.test\r\n250 AUTH PLAIN\r\n'
      if (command === 'AUTH') return or('AUTH', '235 2.7.0 Accepted')
      if (command === 'MAIL') return or('MAIL', '250 Ok')
      if (command === 'RCPT') return or('RCPT', '250 Ok')
      if (command === 'QUIT') return '221 Bye\r\n'
      if (command !== 'DATA') return '250 Ok\r\n'
      inData = step !== 'DATA'
      return or('DATA', '354 Go on')
    },
  }
}

const sending = (step: Step, reply: string) =>
  withLineServer(script(step, reply), port =>
    caught(() =>
      createTransport({ host: '127.0.0.1', port, ignoreTLS: true, auth: { user: 'u', pass: 'p' } }).sendMail(mail),
    ),
  )

const REPLIES: readonly (readonly [Step, string, Shape['kind']])[] = [
  ['greeting', '421 4.3.2 Service not available', 'transient'],
  ['greeting', '554 5.7.1 Your address is blocked', 'permanent'],
  ['AUTH', '535 5.7.8 Username and Password not accepted', 'authentication'],
  ['AUTH', '454 4.7.0 Temporary authentication failure', 'transient'],
  ['MAIL', '530 5.7.0 Must issue a STARTTLS command first', 'authentication'],
  ['MAIL', '450 4.7.1 Please try again later', 'transient'],
  ['RCPT', '550 5.1.1 The email account that you tried to reach does not exist', 'permanent'],
  ['RCPT', '553 5.1.3 The address is not valid', 'permanent'],
  ['RCPT', '450 4.2.1 The mailbox is receiving mail too quickly', 'transient'],
  ['RCPT', '452 4.2.2 The mailbox is full', 'transient'],
  ['DATA', '451 4.3.0 Local error in processing', 'transient'],
  ['end', '552 5.3.4 Message too big for system', 'permanent'],
  ['end', '550 5.7.1 Message rejected as spam', 'permanent'],
  ['end', '421 4.7.0 Too many messages, slow down', 'rate_limited'],
]

export const smtp: Family = {
  family: 'SMTP',
  shapes: [
    ...REPLIES.map(([step, reply, kind]) => shape(`${step}: ${reply}`, kind, () => sending(step, reply), 'SMTP')),
    shape('a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => createTransport({ host: '127.0.0.1', port }).sendMail(mail))
    }),
    shape('hung up', 'network', () =>
      withSocketServer(
        socket => socket.destroy(),
        port => caught(() => createTransport({ host: '127.0.0.1', port }).sendMail(mail)),
      ),
    ),
    shape('no greeting in time', 'network', () =>
      withSocketServer(
        () => {},
        port => caught(() => createTransport({ host: '127.0.0.1', port, greetingTimeout: 30 }).sendMail(mail)),
      ),
    ),
    shape('no recipient', 'validation', () =>
      withLineServer(script('end', '250 Ok'), port =>
        caught(() => createTransport({ host: '127.0.0.1', port, ignoreTLS: true }).sendMail({ ...mail, to: '' })),
      ),
    ),
  ],
}
