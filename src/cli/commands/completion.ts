// `redrive completion`: a script for the shell's own completion.
import { Argument } from 'commander'
import type { Register } from '../cli.js'
import { completionFor, SHELLS, type Shell } from '../completion.js'
import { examples } from '../help.js'

export const completion: Register = (program, cli) => {
  program
    .command('completion')
    .description('a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'which one').choices(SHELLS))
    .addHelpText(
      'after',
      examples(
        'source <(redrive completion bash)',
        'source <(redrive completion zsh)',
        'redrive completion fish > ~/.config/fish/completions/redrive.fish',
      ),
    )
    .action((shell: Shell) => void cli().host.stdout.write(completionFor(shell, program)))
}
