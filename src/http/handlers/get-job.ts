import { RedriveError } from '../../domain/errors.js'
import type { Call } from '../route.js'

export async function getJob({ params, backend }: Call<{ id: string }>) {
  const found = await backend.operator.jobs.get(params.id)
  if (!found) throw new RedriveError('NOT_FOUND', `There is no job ${params.id}`)
  return found
}
