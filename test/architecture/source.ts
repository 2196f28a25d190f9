// Reads one TypeScript file apart: its code (with comments and the insides of literals blanked, every character
// still at its place), its string and template literals, and its imports. Small enough to trust, and it needs
// no compiler.

export interface Literal {
  readonly text: string
  readonly offset: number
}

export interface Import {
  readonly specifier: string
  readonly offset: number
  readonly typeOnly: boolean
}

export interface Source {
  /** Relative to the root of the project, with forward slashes. */
  readonly path: string
  readonly code: string
  readonly literals: readonly Literal[]
  readonly imports: readonly Import[]
  lineOf(offset: number): number
}

export function readSource(path: string, text: string): Source {
  const { code, literals } = separate(text)
  return {
    path,
    code,
    literals,
    imports: importsOf(code, literals),
    lineOf: offset => text.slice(0, offset).split('\n').length,
  }
}

/** One alternative per token that can hide code; a template is handled apart, because code can hide in it. */
const TOKEN = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"|`|[{}]|\/(?![/*])/g
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y
const TEMPLATE_CHUNK = /(?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y

function separate(text: string): { code: string; literals: Literal[] } {
  const literals: Literal[] = []
  const hidden: [start: number, end: number][] = []
  // One entry per open brace; a brace that opened a template's `${` carries the literal it returns to.
  const braces: ({ start: number; text: string } | undefined)[] = []
  let at = 0

  const continueTemplate = (template: { start: number; text: string }) => {
    TEMPLATE_CHUNK.lastIndex = at
    const chunk = TEMPLATE_CHUNK.exec(text)?.[0] ?? text.slice(at)
    const closed = !chunk.endsWith('${')
    hidden.push([at, at + chunk.length - 1])
    at += chunk.length
    const read = { start: template.start, text: template.text + chunk.slice(0, closed ? -1 : undefined) }
    if (closed) literals.push({ text: read.text, offset: read.start })
    else braces.push(read)
  }

  while (at < text.length) {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(text)
    if (!match) break
    const token = match[0]
    const start = match.index
    at = start + token.length
    if (token === '`') {
      continueTemplate({ start, text: '' })
    } else if (token === '{') {
      braces.push(undefined)
    } else if (token === '}') {
      const template = braces.pop()
      if (template) continueTemplate({ start: template.start, text: `${template.text}}` })
    } else if (token === '/') {
      REGEX.lastIndex = start
      const regex = startsRegex(text.slice(0, start)) ? REGEX.exec(text)?.[0] : undefined
      if (regex) {
        at = start + regex.length
        hidden.push([start + 1, at - 1])
      }
    } else if (token.startsWith('/')) {
      hidden.push([start, at])
    } else {
      literals.push({ text: token.slice(1, -1), offset: start })
      hidden.push([start + 1, at - 1])
    }
  }

  const pieces: string[] = []
  let copied = 0
  for (const [start, end] of hidden) {
    pieces.push(text.slice(copied, start), text.slice(start, end).replace(/[^\n]/g, ' '))
    copied = end
  }
  return { code: pieces.join('') + text.slice(copied), literals }
}

/** A slash after a value divides; anywhere else it opens a regular expression. */
function startsRegex(before: string): boolean {
  const last = /([\w$]+|[^\s])\s*$/.exec(before.slice(-80))?.[1] ?? ''
  if (/^(return|typeof|case|in|of|delete|void|throw|new|else|await|yield)$/.test(last)) return true
  return !/[\w$)\]}]$/.test(last)
}

const STATEMENT = /\b(?:import|export)\b(\s+type\b(?!\s*(?:,|from\b)))?(?:[\w$*\s{},]*?\bfrom\b)?\s*(?=['"])/g
const CALL = /\b(?:import|require)\s*\(\s*(?=['"`])/g

function importsOf(code: string, literals: readonly Literal[]): Import[] {
  const literalAt = new Map(literals.map(({ offset, text }) => [offset, text]))
  const found = [...code.matchAll(STATEMENT), ...code.matchAll(CALL)].map(match => ({
    specifier: literalAt.get(match.index + match[0].length) ?? '',
    offset: match.index,
    typeOnly: match[1] !== undefined,
  }))
  return found.filter(({ specifier }) => specifier !== '').sort((a, b) => a.offset - b.offset)
}
