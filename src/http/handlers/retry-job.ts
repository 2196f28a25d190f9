import { isRedriveError, RedriveError } from '../../domain/errors.js'
import type { Call } from '../route.js'

/** A dead job runs again: the same as retrying its dead letter. */
export async function retryJob({ params, backend, acting }: Call<{ id: string }>) {
  const { deadLetters, jobs } = backend.operator
  try {
    return await deadLetters.retry(params.id, acting)
  } catch (error) {
    const job = isRedriveError(error, 'NOT_FOUND') ? await jobs.get(params.id) : undefined
    if (!job) throw error
    const message = `Job ${job.id} is ${job.state}; only a dead one can be retried`
    throw new RedriveError('NOT_PENDING', message, { details: { id: job.id, state: job.state } })
  }
}
