import type { Call } from '../route.js'

/** Running jobs finish, none starts. */
export async function pauseQueue({ params, backend, acting }: Call<{ queue: string }>) {
  await backend.operator.queues.pause(params.queue, acting)
  return backend.operator.queues.get(params.queue)
}
