// How a command ends: the exit codes, and an error that knows its own. One place, because scripts rely on them.

export const EXIT = { ok: 0, error: 1, usage: 2, notFound: 3, auth: 4, conflict: 5, interrupted: 130 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What a person is told in one line: what was wrong, and what to do next. */
export class CliError extends Error {
  readonly exit: ExitCode
  /** The code of the error, where there is one to look up. */
  readonly code: string | undefined
  readonly next: string | undefined

  constructor(message: string, options: { exit?: ExitCode; code?: string; next?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'CliError'
    this.exit = options.exit ?? EXIT.error
    this.code = options.code
    this.next = options.next
  }
}

export const usageError = (message: string, next?: string): CliError =>
  new CliError(message, { exit: EXIT.usage, ...(next !== undefined && { next }) })

/** Ctrl-C. `message`: how far it came, where that matters. */
export const interrupted = (message = 'interrupted'): CliError => new CliError(message, { exit: EXIT.interrupted })

/** By the HTTP status that the API answers with, or that an error of the library stands for. */
export function exitOfStatus(status: number): ExitCode {
  if (status === 404) return EXIT.notFound
  if (status === 401 || status === 403 || status === 429) return EXIT.auth
  if (status === 409 || status === 412) return EXIT.conflict
  if (status >= 400 && status < 500) return EXIT.usage
  return EXIT.error
}
