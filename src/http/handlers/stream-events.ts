import type { Call } from '../route.js'

export function streamEvents({ feed, listening, header }: Call) {
  // A proxy that gathers what it passes on would keep events back.
  header('x-accel-buffering', 'no')
  return feed.listen(listening)
}
