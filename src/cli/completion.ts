// Scripts that teach a shell the commands and options there are, written from the program itself. Pure.
import type { Command, Option } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

interface Node {
  /** `dlq retry`; '' for the program. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly Option[]
  /** What its argument may be, where that is known. */
  readonly choices: readonly string[]
}

export function completionFor(shell: Shell, program: Command): string {
  const nodes = nodesOf(program, [])
  switch (shell) {
    case 'bash':
      return bash(nodes)
    case 'zsh':
      return `#compdef redrive\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bash(nodes)}`
    case 'fish':
      return fish(nodes)
  }
}

function nodesOf(command: Command, path: readonly string[]): Node[] {
  const here: Node = {
    path: path.join(' '),
    commands: command.commands.map(one => ({ name: one.name(), description: one.description() })),
    options: command.options,
    choices: choicesOf(command),
  }
  return [here, ...command.commands.flatMap(one => nodesOf(one, [...path, one.name()]))]
}

const flagsOf = ({ short, long }: Option): string[] => [short, long].filter(flag => flag != null)

const choicesOf = (command: Command): string[] =>
  command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])

function bash(nodes: readonly Node[]): string {
  const shared = [...(nodes[0]?.options ?? []).flatMap(flagsOf), '--help']
  const words = ({ commands, options, choices }: Node) =>
    [...new Set([...commands.map(({ name }) => name), ...choices, ...options.flatMap(flagsOf), ...shared])].join(' ')
  const pattern = (path: string) => (path === '' ? '*' : `" ${path} "*`)
  const complete = (list: string) => `COMPREPLY=($(compgen -W "${list}" -- "$cur"))`
  const values = nodes.flatMap(({ path, options }) =>
    options.flatMap(option =>
      option.argChoices === undefined
        ? []
        : flagsOf(option).map(
            flag => `    ${pattern(path)}"|${flag}") ${complete(option.argChoices?.join(' ') ?? '')}; return ;;`,
          ),
    ),
  )
  // The longest path first: `dlq retry` before `dlq`. What follows a command (ids, options) does not change it.
  const depth = ({ path }: Node) => (path === '' ? 0 : path.split(' ').length)
  const deepest = [...nodes].sort((one, other) => depth(other) - depth(one))
  return `_redrive() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" line=" " word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) line="$line$word " ;; esac
  done
  case "$line|$prev" in
${values.join('\n')}
  esac
  case "$line" in
${deepest.map(node => `    ${pattern(node.path)}) ${complete(words(node))} ;;`).join('\n')}
  esac
}
complete -F _redrive redrive
`
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, commands, options, choices }) => {
    const names = commands.map(({ name }) => name).join(' ')
    const seen = path.split(' ').map(word => `__fish_seen_subcommand_from ${word}`)
    const here = path === '' ? [] : seen
    const conditions = names === '' ? here : [...here, `not __fish_seen_subcommand_from ${names}`]
    const when = (all: readonly string[]) => (all.length === 0 ? '' : ` -n '${all.join('; and ')}'`)
    return [
      ...commands.map(
        ({ name, description }) => `complete -c redrive -f${when(conditions)} -a ${name} -d ${quoted(description)}`,
      ),
      ...choices.map(choice => `complete -c redrive -f${when(here)} -a ${choice}`),
      ...options.map(option => `complete -c redrive${when(here)}${flagOf(option)} -d ${quoted(option.description)}`),
    ]
  })
  return `${lines.join('\n')}\n`
}

function flagOf({ short, long, required, argChoices }: Option): string {
  const names = `${short ? ` -s ${short.slice(1)}` : ''}${long ? ` -l ${long.slice(2)}` : ''}`
  return `${names}${argChoices ? ` -x -a '${argChoices.join(' ')}'` : required ? ' -r' : ''}`
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`
