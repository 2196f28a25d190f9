// The documentation as data: every page, its code blocks and its links.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Page {
  /** From the project's root: `docs/guide/first-job.md`. */
  readonly path: string
  readonly text: string
}

/**
 * How a block is marked: ```ts run is a whole module that is type-checked and run, ```ts check one that is only
 * type-checked (it needs what a test does not have), a plain ```ts a fragment that is only shown. ```sql run holds
 * statements that are run on an empty ledger.
 */
export type Mark = 'run' | 'check' | 'shown'

export interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly mark: Mark
  readonly code: string
}

const TOP = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']

export function readPages(): Page[] {
  const below = readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' })
    .map(name => `docs/${name.replaceAll('\\', '/')}`)
    .filter(path => path.endsWith('.md'))
    .sort()
  return [...TOP, ...below].map(readPage)
}

export const readPage = (path: string): Page => ({ path, text: readFileSync(ROOT + path, 'utf8') })

export function blocksOf({ path, text }: Page): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at += 1) {
    const [, language = '', mark] = /^```(\w+)(?: (\w+))?$/.exec(lines[at] ?? '') ?? []
    if (!language) continue
    const end = lines.indexOf('```', at + 1)
    if (end < 0) throw new Error(`${path}:${at + 1}: the code block is not closed`)
    if (mark !== undefined && mark !== 'run' && mark !== 'check')
      throw new Error(`${path}:${at + 1}: unknown mark ${mark}`)
    blocks.push({
      page: path,
      line: at + 1,
      language,
      mark: mark ?? 'shown',
      code: lines.slice(at + 1, end).join('\n'),
    })
    at = end
  }
  return blocks
}

/** The cells of the table rows below a heading, without the table's own head. */
export function tableBelow({ path, text }: Page, heading: string): string[][] {
  const start = text.indexOf(`\n${heading}\n`)
  if (start < 0) throw new Error(`${path} has no heading "${heading}"`)
  const body = text.slice(start + heading.length + 2)
  const section = body.slice(0, /^#+ /m.exec(body)?.index ?? body.length)
  const rows = section.split('\n').filter(line => line.startsWith('|'))
  return rows.slice(2).map(row =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
}

/** What stands between backticks within the text, blocks left out. */
export const codeIn = (text: string): string[] =>
  [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`]+)`/g)].map(match => match[1] as string)
