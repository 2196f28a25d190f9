// The page of the HTTP API lists every call with its scope, every option, and the status of each code it names.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { ErrorCode } from '../../src/domain/errors.js'
import { allRoutes } from '../../src/http/openapi.js'
import { STATUS_OF } from '../../src/http/problem.js'
import { codeIn, ROOT, readPage, tableBelow } from './pages.js'

const page = readPage('docs/reference/http.md')

it('lists every call with its scope', () => {
  const listed = tableBelow(page, '## Calls').flatMap(([calls = '', scope = '']) =>
    codeIn(calls).map(call => `${call} ${codeIn(scope)[0]}`),
  )
  const served = allRoutes('').map(({ method, path, scope }) => `${method.toUpperCase()} ${path} ${scope}`)
  expect(listed.filter(call => /^[A-Z]+ \//.test(call)).sort()).toEqual(served.sort())
})

it('lists every option', () => {
  const source = readFileSync(`${ROOT}src/http/create-http.ts`, 'utf8')
  const [, body = ''] = /interface HttpOptions \{([\s\S]*?)^\}/m.exec(source) ?? []
  const options = [...body.matchAll(/^ {2}readonly (\w+)\?:/gm)].map(match => match[1])
  expect(
    tableBelow(page, '## Mounting')
      .flatMap(([cell = '']) => codeIn(cell))
      .sort(),
  ).toEqual(options.sort())
})

it('names the status of each code', () => {
  for (const [status, codes = ''] of tableBelow(page, '## Errors')) {
    for (const code of codeIn(codes)) expect(STATUS_OF[code as ErrorCode], code).toBe(Number(status))
  }
})
