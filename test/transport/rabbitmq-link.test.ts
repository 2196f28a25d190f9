// The end of a connection to RabbitMQ, with time by hand.
import { expect, it, onTestFinished } from 'vitest'
import { manualClock } from '../../src/testing/manual-clock.js'
import { Link } from '../../src/transport/transports/rabbitmq-link.js'
import { gate } from '../support/gate.js'
import { openProxy } from '../support/proxy.js'
import { rabbitmqUrl } from '../support/rabbitmq.js'

async function linked() {
  const network = await openProxy(await rabbitmqUrl())
  onTestFinished(() => network.close())
  // Without heartbeats nobody else ever finds out that the peer is silent.
  const url = new URL(network.url)
  url.searchParams.set('heartbeat', '0')
  const clock = manualClock()
  const [up, down] = [gate(), gate()]
  const link = new Link({ url: url.href, clock, random: () => 0.5, onError: up.refuse })
  link.follow({ up: () => up.open(), down: () => down.open() })
  await up.passed
  return { network, clock, link, down: down.passed }
}

it('closing waits for a peer that answers, and for no time', async () => {
  const { link, down, clock } = await linked()
  await link.close()
  await down
  expect(clock.pending).toBe(0)
})

it('closing does not wait for a peer that says nothing any more', async () => {
  const { network, link, clock, down } = await linked()
  network.freeze()
  const closing = link.close()
  await clock.advance(2_000)
  await closing
  await down
  expect(clock.pending).toBe(0)
})
