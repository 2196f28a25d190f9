// The page of every HTTP call is what `npm run reference` writes from the OpenAPI document.
import { expect, it } from 'vitest'
import { httpReference } from '../../scripts/http-reference.js'
import { openApiDocument } from '../../scripts/openapi-document.js'
import { readPage } from './pages.js'

it('is up to date: otherwise run `npm run reference`', async () => {
  expect(readPage('docs/reference/http-api.md').text).toBe(httpReference(await openApiDocument()))
})

it('has every call of the document, and links only to shapes that are there', async () => {
  const { paths } = await openApiDocument()
  const { text } = readPage('docs/reference/http-api.md')
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of Object.keys(methods)) expect(text).toContain(`### ${method.toUpperCase()} ${path}\n`)
  }
  const shapes = [...text.matchAll(/^### (\w+)$/gm)].map(match => match[1]?.toLowerCase())
  const linked = [...text.matchAll(/\]\(#(\w+)\)/g)].map(match => match[1])
  expect(linked.filter(name => !shapes.includes(name))).toEqual([])
})
