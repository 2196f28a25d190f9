import type { Call } from '../route.js'

/** One that waits is cancelled; one that runs is asked to stop. */
export const cancelJob = async ({ params, backend, acting }: Call<{ id: string }>) => ({
  id: params.id,
  result: await backend.operator.jobs.cancel(params.id, acting),
})
