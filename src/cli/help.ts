// Examples below the help of a command.

export const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map(line => `  $ ${line}`).join('\n')}`
