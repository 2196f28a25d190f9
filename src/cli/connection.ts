// Where the API is and who we are: options beat the environment. The token comes from the environment or a file, never
// from the command line, where every process of the machine could read it.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../domain/clock.js'
import { Client } from './client.js'
import { usageError } from './exit.js'

export interface ConnectionOptions {
  readonly url?: string
  readonly tokenFile?: string
}

type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_URL = 'http://127.0.0.1:3000'

export async function connect(
  { url, tokenFile }: ConnectionOptions,
  { env, clock, signal }: { env: Environment; clock: Clock; signal: AbortSignal },
): Promise<Client> {
  const token = tokenFile === undefined ? env.REDRIVE_TOKEN || undefined : await tokenIn(tokenFile)
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    const where = tokenFile === undefined ? 'REDRIVE_TOKEN' : `The token in ${tokenFile}`
    throw usageError(`${where} holds characters that a token cannot have`, 'give the token alone')
  }
  return new Client({ url: checkUrl(url, env), token, clock, signal })
}

async function tokenIn(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(error => {
    throw usageError(`The token file cannot be read: ${(error as Error).message}`)
  })
  const token = text.trim()
  if (token === '') throw usageError(`The token file ${path} is empty`)
  return token
}

function checkUrl(option: string | undefined, env: Environment): string {
  const [name, text] = option !== undefined ? ['--url', option] : ['REDRIVE_URL', env.REDRIVE_URL || DEFAULT_URL]
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usageError(`${name} is ${JSON.stringify(text)}; it must be a URL such as ${DEFAULT_URL}`)
  }
  // What it held is not repeated: it is a secret.
  if (url.username || url.password) throw usageError(`${name} must be without user and password`, 'use REDRIVE_TOKEN')
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
