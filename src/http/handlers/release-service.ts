import type { Call } from '../route.js'

/** Its jobs run again, slowly at first. */
export const releaseService = ({ params, backend, acting }: Call<{ name: string }>) =>
  backend.operator.services.release(params.name, acting)
