// Asks before something is done that cannot be taken back. Where nobody can be asked, --yes has to say so beforehand.
import { createInterface } from 'node:readline/promises'
import { printable } from '../domain/printable.js'
import type { Cli } from './cli.js'
import { CliError, EXIT, interrupted, usageError } from './exit.js'

export async function confirm({ host, options }: Cli, question: string): Promise<void> {
  if (options.yes) return
  const { stdin, stderr } = host
  if (!stdin.isTTY) throw usageError(`${question} Nobody can be asked here`, 'say --yes if that is meant')
  const signal = host.interrupt()
  // Ctrl-C reaches the question, not the process, while it waits for a line.
  const lines = createInterface({ input: stdin, output: stderr as unknown as NodeJS.WritableStream })
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      lines.once('SIGINT', () => reject(interrupted()))
      lines.once('close', () => resolve(''))
      lines.question(printable(`${question} [y/N] `), { signal }).then(resolve, () => reject(interrupted()))
    })
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new CliError('Nothing was changed', { exit: EXIT.error })
  } finally {
    lines.close()
  }
}
