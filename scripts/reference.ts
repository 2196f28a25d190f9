// `npm run reference`: writes the page of every HTTP call from the OpenAPI document.
import { writeFileSync } from 'node:fs'
import { httpReference } from './http-reference.js'
import { openApiDocument } from './openapi-document.js'

const PAGE = new URL('../docs/reference/http-api.md', import.meta.url)

writeFileSync(PAGE, httpReference(await openApiDocument()))
