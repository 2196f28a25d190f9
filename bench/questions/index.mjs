// Every question, in the order of the targets.
import drain from './drain.mjs'

/** @type {readonly import('../harness/rounds.mjs').Question[]} */
export const questions = [drain]
