// Someone who listens to the stream of events.
export interface ServerSentEvent {
  readonly event: string
  readonly id?: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever was told is looked at
  readonly data: any
}

export interface EventStream {
  readonly status: number
  /** Everything told so far. */
  readonly told: readonly ServerSentEvent[]
  /** Comments that came. */
  readonly comments: readonly string[]
  /** Resolves with the first event that fits, told already or yet to come. */
  until(fits: (event: ServerSentEvent) => boolean): Promise<ServerSentEvent>
  /** Resolves when another comment has come. */
  heartbeat(): Promise<void>
  readonly ended: Promise<void>
  close(): Promise<void>
}

export function listenTo(response: Response): EventStream {
  const told: ServerSentEvent[] = []
  const comments: string[] = []
  const looking = new Set<() => void>()
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const changed = () => {
    for (const look of [...looking]) look()
  }
  const read = async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        if (block.startsWith(':')) comments.push(block)
        else told.push(eventOf(block))
      }
      changed()
    }
  }
  const ended = read().catch(() => {})
  const when = <T>(look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const again = () => {
        const found = look()
        if (found === undefined) return
        looking.delete(again)
        resolve(found)
      }
      looking.add(again)
      again()
      void ended.then(
        () => looking.delete(again) && reject(new Error(`the stream ended; told: ${JSON.stringify(told)}`)),
      )
    })
  return {
    status: response.status,
    told,
    comments,
    ended,
    until: fits => when(() => told.find(fits)),
    heartbeat: () => {
      const before = comments.length
      return when(() => (comments.length > before ? true : undefined)).then(() => {})
    },
    close: () => reader.cancel().catch(() => {}),
  }
}

function eventOf(block: string): ServerSentEvent {
  const fields = Object.fromEntries(
    block.split('\n').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  const { event = '', id, data = 'null' } = fields as { event?: string; id?: string; data?: string }
  return { event, data: JSON.parse(data), ...(id !== undefined && { id }) }
}
