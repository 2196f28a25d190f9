// What every command is given: where its data and words go, the way to the API, and Ctrl-C.
import type { Command } from 'commander'
import type { Clock } from '../domain/clock.js'
import type { Client } from './client.js'
import { connect } from './connection.js'
import { type Format, Output, type Stream } from './output.js'

/** The process, or what stands for it in a test. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stdout: Stream
  readonly stderr: Stream
  readonly clock: Clock
  readonly version: string
  /** Aborted by Ctrl-C. Whoever asks for it has taken over the signal. */
  readonly interrupt: () => AbortSignal
}

export interface GlobalOptions {
  readonly output: Format
  readonly url?: string
  readonly tokenFile?: string
  readonly yes?: true
  readonly width?: number
}

export interface Cli {
  readonly host: Host
  readonly options: GlobalOptions
  readonly output: Output
  /** The API; nothing is asked of it before its first use. */
  client(): Promise<Client>
}

/** A command file adds its command to the program. What it does gets `cli` when it runs: options are known then. */
export type Register = (program: Command, cli: () => Cli) => void

export function createCli(host: Host, options: GlobalOptions): Cli {
  const { env, clock } = host
  let client: Promise<Client> | undefined
  return {
    host,
    options,
    output: new Output(host.stdout, host.stderr, { format: options.output, width: options.width, env }),
    client: () => {
      client ??= connect(options, { env, clock, signal: host.interrupt() })
      return client
    },
  }
}
