// Tells what triage rules did.
import type { Announce } from '../domain/event.js'
import type { TriageDone } from './triage-run.js'

export function announceTriage(announce: Announce, { rule, letters }: TriageDone): void {
  const { name, action } = rule
  announce('triage.acted', () => ({ rule: name, action, letters: letters.map(({ id }) => id) }))
  if (action.type !== 'escalate') return
  announce('triage.escalated', () => ({
    rule: name,
    message: action.message,
    letters: letters.map(({ id, queue, name, kind, fingerprint, message }) => {
      return { id, queue, name, kind, group: fingerprint, error: message }
    }),
  }))
}
