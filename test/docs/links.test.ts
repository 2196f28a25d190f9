// Every link inside the project leads somewhere: to a file that is there, and to a heading that is there.
import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, it, test } from 'vitest'
import { type Page, ROOT, readPages } from './pages.js'

const pages = readPages()

const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')

const linksOf = ({ text }: Page) => [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(match => match[1] as string)

/** As GitHub makes them. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

const anchorsOf = ({ text }: Page) =>
  new Set(
    [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)].map(match => anchorOf(match[1] as string)),
  )

test.each(pages.map(page => [page.path, page] as const))('%s', (path, page) => {
  const broken = linksOf(page).filter(link => {
    if (/^https:\/\//.test(link)) return false
    const [target = '', anchor] = link.split('#')
    const file = target === '' ? path : posix.join(posix.dirname(path), target)
    if (!existsSync(ROOT + file)) return true
    const linked = pages.find(({ path }) => path === file)
    return anchor !== undefined && !(linked && anchorsOf(linked).has(anchor))
  })
  expect(broken).toEqual([])
})

it('the index of docs/ leads to every page', () => {
  const reached = new Set<string>()
  const follow = (path: string) => {
    const page = pages.find(page => page.path === path)
    if (!page || reached.has(path)) return
    reached.add(path)
    for (const link of linksOf(page)) follow(posix.join(posix.dirname(path), link.split('#')[0] ?? ''))
  }
  follow('docs/README.md')
  expect(pages.map(({ path }) => path).filter(path => path.startsWith('docs/') && !reached.has(path))).toEqual([])
})
