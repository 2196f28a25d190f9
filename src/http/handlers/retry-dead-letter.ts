import type { Call } from '../route.js'

/** A second one while it is being redriven is a conflict. */
export const retryDeadLetter = ({ params, backend, acting }: Call<{ id: string }>) =>
  backend.operator.deadLetters.retry(params.id, acting)
