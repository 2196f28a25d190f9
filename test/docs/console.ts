// A page that is a play: its `console run` blocks are commands that are carried out in order, its `<!-- stage: … -->` comments
// what happens between them. Played, it is the page again with what the commands print now; ids are evened out.
import { systemClock } from '../../src/domain/clock.js'
import { run } from '../cli/support/cli.js'

export interface Scene {
  readonly url: string
  readonly token: string
  readonly now: () => number
  /** What happens between commands, by its name. */
  readonly stages: Readonly<Record<string, () => Promise<void>>>
}

const SAMPLE = '0197e2c4-6b00-7000-8000-000000000099'
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

export async function play(page: string, scene: Scene): Promise<string> {
  const ids = new Ids()
  const lines = page.split('\n')
  const played: string[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    played.push(line)
    const [, stage] = /^<!-- stage: (.+) -->$/.exec(line) ?? []
    if (stage !== undefined) await enter(scene, stage)
    if (line !== '```console run') continue
    const end = lines.indexOf('```', at)
    if (end < 0) throw new Error(`line ${at + 1}: the block is not closed`)
    const command = commandIn(lines.slice(at + 1, end))
    const printed = settled(await carryOut(ids.real(command.join('\n')), scene))
    played.push(...command, ...ids.evened(printed).trimEnd().split('\n'))
    at = end - 1
  }
  return played.join('\n')
}

/** What differs from one machine, or from one run, to another: which of many failures is the sample of a group, for one. */
const settled = (text: string): string =>
  text
    .replace(/^Latest\n {2}job .*$/m, sample => sample.replace(UUID, SAMPLE))
    .replace(/Postgres \d+(?:\.\d+)?/, 'Postgres 18.6')
    .replace(/\d+ dead rows? beside \d+ live ones?/, '120 dead rows beside 24 live ones')

async function enter({ stages }: Scene, name: string): Promise<void> {
  const stage = stages[name]
  if (!stage) throw new Error(`the page has a stage "${name}" that nobody plays`)
  await stage()
}

/** Up to the first line that does not end with a backslash. */
function commandIn(block: readonly string[]): string[] {
  const last = block.findIndex(line => !line.endsWith('\\'))
  return block.slice(0, last + 1)
}

async function carryOut(text: string, scene: Scene): Promise<string> {
  const words = wordsIn(text.replace(/^\$ /, '').replace(/\\\n/g, ' '), {
    REDRIVE_URL: scene.url,
    REDRIVE_TOKEN: scene.token,
  })
  const [program, ...args] = words
  if (program === 'curl') return curl(args)
  if (program !== 'redrive') throw new Error(`nobody plays ${program}`)
  const env = { REDRIVE_URL: scene.url, REDRIVE_TOKEN: scene.token }
  const clock = { ...systemClock, now: scene.now }
  const { out, err } = await run(args, { env, clock })
  return out + err
}

/** As a shell would part them: quotes, and variables outside of single ones. */
function wordsIn(text: string, variables: Readonly<Record<string, string>>): string[] {
  const filled = (part: string) => part.replace(/\$(\w+)/g, (_, name: string) => variables[name] ?? '')
  return [...text.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"]+)+/g)].map(([word]) =>
    word.replace(
      /'([^']*)'|"([^"]*)"|([^'"]+)/g,
      (_, single, double, plain) => single ?? filled(double ?? plain ?? ''),
    ),
  )
}

/** As much of curl as the pages use: -s -X -H -d and an address; `| jq .` or a path such as `.reasons` shows JSON. */
async function curl(args: readonly string[]): Promise<string> {
  const pipe = args.indexOf('|')
  const [own, shown] = pipe < 0 ? [args, []] : [args.slice(0, pipe), args.slice(pipe + 1)]
  const headers = new Headers()
  let [method, body, url]: (string | undefined)[] = []
  for (let at = 0; at < own.length; at += 1) {
    const word = own[at] ?? ''
    if (word === '-s') continue
    if (word === '-X') method = own[++at]
    else if (word === '-d') body = own[++at]
    else if (word === '-H') {
      const [name = '', ...value] = (own[++at] ?? '').split(':')
      headers.set(name, value.join(':').trim())
    } else url = word
  }
  const response = await fetch(url ?? '', {
    headers,
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    ...(body !== undefined && { body }),
  })
  const text = await response.text()
  if (shown[0] !== 'jq') return text
  const value = (shown[1] ?? '.')
    .split('.')
    .filter(name => name !== '')
    .reduce((inner: unknown, name) => (inner as Record<string, unknown>)[name], JSON.parse(text))
  return JSON.stringify(value, null, 2)
}

/** The same ids every time, in the order in which they are first printed. */
class Ids {
  readonly #evened = new Map<string, string>()

  evened(text: string): string {
    return text.replace(UUID, id => {
      const known = id === SAMPLE ? SAMPLE : this.#evened.get(id)
      if (known !== undefined) return known
      const made = `0197e2c4-6b00-7000-8000-${String(this.#evened.size + 1).padStart(12, '0')}`
      this.#evened.set(id, made)
      return made
    })
  }

  real(text: string): string {
    return text.replace(UUID, shown => {
      const [id] = [...this.#evened].find(([, evened]) => evened === shown) ?? []
      if (id === undefined) throw new Error(`${shown} was not printed before`)
      return id
    })
  }
}
