// Completion scripts, as shells run them. There is always a bash where the tests run; fish and zsh are looked at as text.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands.js'
import { run } from './support/cli.js'

const shell = promisify(execFile)

/** What bash offers after these words; the last one is being typed. */
async function offered(...words: string[]): Promise<string[]> {
  const { out } = await run(['completion', 'bash'])
  const script = `${out}
COMP_WORDS=(redrive "$@"); COMP_CWORD=$#; _redrive; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await shell('bash', ['-c', script, 'bash', ...words])
  return stdout.trimEnd().split('\n')
}

it('offers commands, options and their values', async () => {
  const commands = await offered('')
  for (const name of ['stats', 'dlq', 'doctor', 'completion']) expect(commands).toContain(name)
  expect(commands.filter(word => !word.startsWith('-')).length).toBe(COMMANDS.length)
  expect(await offered('dlq', 're')).toEqual(['retry'])
  expect(await offered('dlq', 'retry', '--a')).toEqual(['--assigned-to', '--all'])
  expect(await offered('dlq', 'ls', '--kind', 'n')).toEqual(['network'])
  expect(await offered('dlq', 'ls', '--queue', 'mail', '--st')).toEqual(['--status'])
  expect(await offered('stats', '-o', 'j')).toEqual(['json', 'jsonl'])
  expect(await offered('completion', 'f')).toEqual(['fish'])
  expect(await offered('nothing', 'x')).toEqual([''])
})

it('has a script for zsh and fish', async () => {
  const { out: zsh } = await run(['completion', 'zsh'])
  expect(zsh).toMatch(/^#compdef redrive\n[\s\S]*complete -F _redrive redrive\n$/)
  const { out: fish } = await run(['completion', 'fish'])
  for (const line of fish.trimEnd().split('\n')) expect(line).toMatch(/^complete -c redrive /)
  expect(fish).toMatch(/__fish_seen_subcommand_from dlq; and .*-a retry/)
})
