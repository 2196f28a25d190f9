// For what is done in a transaction of its own, and noted after it. It is done: an audit row that cannot be written is tried
// again and reported, and never turns the answer into an error, which would ask for it to be done twice.
import type { Call } from '../route.js'

type Entry = Parameters<Call['backend']['operator']['audit']['write']>[0]

export async function auditAfterwards(
  { backend, report }: Pick<Call, 'backend' | 'report'>,
  entry: Entry,
): Promise<void> {
  const write = () => backend.operator.audit.write(entry)
  await write().catch(write).catch(report)
}
