import type { Call } from '../route.js'

/** Whoever asks within a second gets the same: it looks at many things. */
export const getDoctor = ({ backend, cached }: Call) => cached('doctor', () => backend.operator.doctor())
