import type { Call } from '../route.js'

export async function resumeQueue({ params, backend, acting }: Call<{ queue: string }>) {
  await backend.operator.queues.resume(params.queue, acting)
  return backend.operator.queues.get(params.queue)
}
