import type { Call } from '../route.js'

export const markFailed = ({ params, body, backend, acting }: Call<{ id: string }, unknown, { reason: string }>) =>
  backend.operator.deadLetters.markFailed(params.id, { ...acting, reason: body.reason })
