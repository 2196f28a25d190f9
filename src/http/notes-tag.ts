// The ETag of what people wrote on a dead letter: it changes with their words, not with the life of the job.
import { createHash } from 'node:crypto'

interface Notes {
  readonly notes?: string | null
  readonly assignedTo?: string | null
  readonly priority: number
}

export const notesTag = ({ notes = null, assignedTo = null, priority }: Notes): string =>
  createHash('sha256')
    .update(JSON.stringify([notes, assignedTo, priority]))
    .digest('base64url')
    .slice(0, 22)
