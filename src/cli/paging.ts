// Lists longer than a page: followed by their cursors, up to as many as were asked for.
import type { List } from './answers.js'
import type { Client, Query } from './client.js'
import type { Output } from './output.js'

const PAGE = 200

export interface Gathered<Item> {
  readonly items: readonly Item[]
  readonly total: List<Item>['total']
  /** There are more than were asked for. */
  readonly more: boolean
}

export async function gather<Item>(
  client: Client,
  path: string,
  query: Query,
  { limit, onPage }: { limit: number; onPage?: (sofar: number) => void },
): Promise<Gathered<Item>> {
  const items: Item[] = []
  let cursor: string | undefined
  let total: List<Item>['total'] = { value: 0, exact: true }
  for (;;) {
    const page: List<Item> = await client.get(path, { ...query, limit: Math.min(PAGE, limit - items.length), cursor })
    if (cursor === undefined) total = page.total
    items.push(...page.items)
    onPage?.(items.length)
    // A page may be short, or empty, and the list still go on: a search looks at so many rows at a time.
    if (page.nextCursor === null || items.length >= limit) return { items, total, more: page.nextCursor !== null }
    cursor = page.nextCursor
  }
}

/** Below a list that was cut. */
export function sayMore<Item>(output: Output, { items, total, more }: Gathered<Item>): void {
  if (!more) return
  const known =
    total.value > items.length ? ` of ${total.value.toLocaleString('en')}${total.exact ? '' : ' or more'}` : ''
  output.say(`${items.length}${known} shown; --limit shows more.`)
}
