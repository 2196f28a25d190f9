import type { Call } from '../route.js'

/** 503 where it is unhealthy, for those who look at nothing else. */
export async function getHealth({ backend, cached, status }: Call) {
  const health = await cached('health', () => backend.health())
  if (health.status === 'unhealthy') status(503)
  return health
}
