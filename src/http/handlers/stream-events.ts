import type { Call } from '../route.js'

export const streamEvents = ({ feed, listening }: Call) => feed.listen(listening)
