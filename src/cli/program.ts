// The program: options that every command has, the commands, and how each end becomes an exit code and one line.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { isRedriveError } from '../domain/errors.js'
import { printable } from '../domain/printable.js'
import { STATUS_OF } from '../http/problem.js'
import { type Cli, createCli, type GlobalOptions, type Host } from './cli.js'
import { COMMANDS } from './commands.js'
import { CliError, EXIT, type ExitCode, exitOfStatus } from './exit.js'
import { nextStep } from './next-step.js'
import { FORMATS } from './output.js'

const HELP = `
Environment:
  REDRIVE_URL    where the API is served (http://127.0.0.1:3000)
  REDRIVE_TOKEN  the token to use; never given as an argument, which others could read
  NO_COLOR       no colours

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 not allowed, 5 conflict, 130 interrupted`

export function createProgram(host: Host): Command {
  const program = new Command('redrive')
  let cli: Cli | undefined
  program
    .description('Background jobs that survive failure: look, understand, retry.')
    .version(host.version, '-V, --version', 'the version')
    .helpOption('-h, --help', 'help for a command')
    .helpCommand('help [command]', 'help for a command')
    .addOption(new Option('-o, --output <format>', 'how data is printed').choices(FORMATS).default('table'))
    .option('--url <url>', 'where the API is served (REDRIVE_URL)')
    .option('--token-file <path>', 'file with the token (instead of REDRIVE_TOKEN)')
    .option('-y, --yes', 'ask nothing')
    .option('--width <columns>', "cut tables to so many columns (default: the terminal's)", columns)
    .addHelpText('after', HELP)
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: text => void host.stdout.write(text),
      writeErr: text => void host.stderr.write(text),
      outputError: (text, write) => write(`redrive: ${printable(text.replace(/^error: /, '')).trim()}\n`),
      getOutHelpWidth: () => host.stdout.columns ?? 100,
      getErrHelpWidth: () => host.stderr.columns ?? 100,
    })
    .exitOverride()
  const current = () => {
    cli ??= createCli(host, program.opts<GlobalOptions>())
    return cli
  }
  for (const register of COMMANDS) register(program, current)
  return program
}

/** Runs one command line; returns its exit code. */
export async function runCli(args: readonly string[], host: Host): Promise<ExitCode> {
  try {
    await createProgram(host).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    // Commander has printed help, version or what was wrong with the command line.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const { message, exit, code, next } = failureOf(error)
    const end = next === undefined ? '' : `; ${next}`
    host.stderr.write(`${printable(`redrive: ${message}${code === undefined ? '' : ` [${code}]`}${end}`)}\n`)
    return exit
  }
}

interface Failure {
  readonly message: string
  readonly exit: ExitCode
  readonly code?: string | undefined
  readonly next?: string | undefined
}

function failureOf(error: unknown): Failure {
  if (error instanceof CliError) return error
  const { message } = error as Error
  if (!isRedriveError(error)) return { message: message || String(error), exit: EXIT.error }
  const { code } = error
  return { message, exit: exitOfStatus(STATUS_OF[code]), code, next: nextStep(code) }
}

function columns(text: string): number {
  const number = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (number < 20) throw new InvalidArgumentError('It must be a whole number from 20 to 9999.')
  return number
}
