// Recovery runs, as people see them. They are run by the runtime; what they did is in the ledger.
export type { RecoveryRun, RecoveryStatistics } from '../ledger/recovery-run.js'
