// A port that cannot be had is told in one line, with what to do about it.
import { CliError } from './exit.js'

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use',
  EACCES: 'this user may not listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such host',
}

export async function listening<T>(
  { port, host }: { port: number; host: string },
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start()
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    const reason = REASONS[code] ?? message
    throw new CliError(`Port ${port} of ${host} cannot be listened on: ${reason}`, {
      cause,
      next: 'choose others with --port and --host, or PORT and HOST',
    })
  }
}
