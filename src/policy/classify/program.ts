// Programs that were run with exec or execFile: how they ended. An exit code alone says little: the text may say more.
import { prop, textProp } from '../read.js'
import type { Source } from './evidence.js'

export const program: Source = ({ error }) => {
  if (textProp(error, 'cmd') === undefined) return undefined
  const signal = textProp(error, 'signal')
  if (signal === 'SIGKILL' && prop(error, 'killed') !== true)
    return { kind: 'system', because: 'the program was killed (SIGKILL), as happens when memory runs out' }
  if (signal !== undefined) return { kind: 'transient', because: `the program was stopped (${signal})` }
  const code = prop(error, 'code')
  return code === 126 || code === 127
    ? { kind: 'permanent', because: `exit code ${code}: the program cannot be run` }
    : undefined
}
