// THE state machine: every state a job can be in and every legal move between two. The database's enum and
// CHECK constraints and the diagram in the docs mirror this table; a test compares all three.

export const STATES = ['scheduled', 'waiting', 'active', 'retrying', 'held', 'completed', 'dead', 'cancelled'] as const

export type State = (typeof STATES)[number]

/** States of jobs in the live table: they will still run. */
export const LIVE_STATES = ['scheduled', 'waiting', 'active', 'retrying', 'held'] as const satisfies readonly State[]
export type LiveState = (typeof LIVE_STATES)[number]

/** Live states that wait for a time: the promoter moves them to `waiting` when it has come. */
export const DELAYED_STATES = ['scheduled', 'retrying', 'held'] as const satisfies readonly LiveState[]
export type DelayedState = (typeof DELAYED_STATES)[number]

/** States of jobs in the history. */
export const FINISHED_STATES = ['completed', 'cancelled'] as const satisfies readonly State[]
export type FinishedState = (typeof FINISHED_STATES)[number]

/** Where a new job may begin; `active` if it is handed to a worker as it is enqueued. */
export const INITIAL_STATES = ['scheduled', 'waiting', 'active'] as const satisfies readonly State[]

export const MOVES: Readonly<Record<State, readonly State[]>> = {
  scheduled: ['waiting', 'cancelled'],
  waiting: ['active', 'held', 'cancelled'],
  active: ['completed', 'retrying', 'waiting', 'scheduled', 'held', 'dead', 'cancelled'],
  retrying: ['waiting', 'dead', 'cancelled'],
  held: ['waiting', 'dead', 'cancelled'],
  dead: ['waiting'],
  completed: [],
  cancelled: [],
}

export const canMove = (from: State, to: State): boolean => MOVES[from].includes(to)

/** What became of a dead letter; `redriving` while its job is live again. */
export const RECOVERY_STATUSES = ['pending', 'redriving', 'recovered', 'permanently_failed'] as const
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number]
