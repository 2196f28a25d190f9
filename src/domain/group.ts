// A group: failures of one cause, as something that people work on.

/** `muted`: known and not to be heard of. A resolved one that fails again is open again, and says so (`regressed`). */
export const GROUP_STATUSES = ['open', 'acknowledged', 'resolved', 'muted'] as const
export type GroupStatus = (typeof GROUP_STATUSES)[number]

/** The most groups that one can have merged into it: a page of its dead letters is merged from so many indexes. */
export const MOST_MERGED = 15
