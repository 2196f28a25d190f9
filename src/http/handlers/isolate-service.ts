import type { Call } from '../route.js'

/** Its jobs are held until it is released; running ones finish. */
export const isolateService = ({ params, backend, acting }: Call<{ name: string }>) =>
  backend.operator.services.isolate(params.name, acting)
