// The OpenAPI document as the API itself gives it.
import { allRoutes } from '../src/http/openapi.js'
import type { Call } from '../src/http/route.js'
import type { Document } from './http-reference.js'

export async function openApiDocument(): Promise<Document> {
  const route = allRoutes('').find(({ path }) => path === '/openapi.json')
  if (!route) throw new Error('the API has no route /openapi.json')
  // It depends on nothing that is asked.
  return (await route.handle({} as Call)) as Document
}
