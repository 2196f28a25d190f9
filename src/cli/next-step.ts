// What to do about an error, by its code: the second half of the line that a person is told.

const NEXT: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: 'set REDRIVE_TOKEN, or --token-file, to a token that this server knows',
  FORBIDDEN: 'use a token that has this scope; `redrive token create` makes one',
  THROTTLED: 'check REDRIVE_TOKEN before you try again',
  NOT_FOUND: 'the `ls` of this command lists what there is',
  NOT_PENDING: '`redrive dlq show` tells what became of it',
  NOT_CANCELLABLE: '`redrive jobs show` tells how it ended',
  UNIQUE_KEY_TAKEN: 'let the live job end, or cancel it, and retry',
  VERSION_CONFLICT: 'look at it again, then repeat the change',
  TOKEN_EXISTS: 'take another name, or `redrive token revoke` the old one',
  DATABASE_UNREACHABLE: '`redrive doctor` looks for the cause',
  DATABASE_TOO_OLD: 'upgrade the server',
  SCHEMA_PENDING: 'run `redrive migrate`',
  SCHEMA_NEWER: 'upgrade this redrive',
  LEDGER_LOCKED: 'ask the process that has it open: set REDRIVE_URL and REDRIVE_TOKEN',
  TAKES_TOO_LONG: 'it may still come to an end: look before you repeat it',
  STATEMENT_TIMEOUT: 'narrow it down, or try again; `redrive doctor` looks for the cause',
  INTERNAL: 'the log of the server has it, by the id of the request',
}

export const nextStep = (code: string | undefined): string | undefined => (code === undefined ? undefined : NEXT[code])
