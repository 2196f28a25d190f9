// Real errors of the libraries that jobs use, each with the kind it must be given (classification/, one file a
// family). Where a library is installed, it makes the error itself, against a server that misbehaves as told.
import { types } from 'node:util'
import { describe, expect, it } from 'vitest'
import { isKind } from '../../../src/domain/failure.js'
import { LIMITS } from '../../../src/domain/limits.js'
import { classify } from '../../../src/policy/classify.js'
import { amqp } from './classification/amqp.js'
import { aws } from './classification/aws.js'
import { chains } from './classification/chains.js'
import { databases } from './classification/databases.js'
import { fetches } from './classification/fetch.js'
import { grpc } from './classification/grpc.js'
import { httpClients } from './classification/http-clients.js'
import { javascript } from './classification/javascript.js'
import { node } from './classification/node.js'
import { postgres } from './classification/postgres.js'
import { processes } from './classification/processes.js'
import { redis } from './classification/redis.js'
import type { Family } from './classification/shape.js'
import { smtp } from './classification/smtp.js'
import { strange } from './classification/strange.js'
import { text } from './classification/text.js'
import { validation } from './classification/validation.js'

const CORPUS: readonly Family[] = [
  node,
  processes,
  fetches,
  httpClients,
  aws,
  postgres,
  databases,
  amqp,
  redis,
  smtp,
  grpc,
  validation,
  javascript,
  chains,
  text,
  strange,
]

describe.each(CORPUS)('$family', ({ shapes }) => {
  it.each(shapes)('$name → $kind', async ({ thrown, kind, because = '', context = {} }) => {
    const made = thrown()
    // Not simply awaited: some of what is thrown would answer to that.
    const failure = classify(types.isPromise(made) ? await made : made, context)
    expect(failure.kind, `${failure.type} ${failure.code ?? ''} ${failure.message}: ${failure.because}`).toBe(kind)
    expect(failure.because).toContain(because)
    expect(failure.because).not.toBe('')
    expect(isKind(failure.kind)).toBe(true)
    expect(JSON.stringify(failure).length).toBeLessThan(20 * LIMITS.messageChars)
  })
})

it('is a corpus', () => {
  const names = CORPUS.flatMap(({ family, shapes }) => shapes.map(({ name }) => `${family}: ${name}`))
  expect(names.length).toBeGreaterThan(300)
  expect(new Set(names).size).toBe(names.length)
})
