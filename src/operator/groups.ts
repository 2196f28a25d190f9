// What a person may do about the causes of failures: look, take one on, resolve it, merge what is one cause and split what
// is not. Every change is audited in the transaction that makes it.
import { invalid, RedriveError } from '../domain/errors.js'
import { isKind, KINDS } from '../domain/failure.js'
import { GROUP_STATUSES, MOST_MERGED } from '../domain/group.js'
import { cap, LIMITS } from '../domain/limits.js'
import { type AuditEntry, writeAudit } from '../ledger/audit.js'
import type { Queryable } from '../ledger/database.js'
import type { Count, Page } from '../ledger/dead-letter.js'
import {
  countGroups,
  GROUP_SORTS,
  type Group,
  type GroupFilter,
  type GroupSort,
  getGroup,
  isGroupCursor,
  listGroups,
} from '../ledger/group.js'
import {
  changeGroup,
  type GroupBefore,
  type GroupChange,
  type LockedGroup,
  lockGroups,
  pointGroups,
  recountGroup,
} from '../ledger/group-change.js'
import { type GroupDetail, groupDetail } from '../ledger/group-detail.js'
import { membersOf } from '../ledger/group-members.js'
import { groupIsMade, makeGroups } from '../ledger/group-notice.js'
import { type Acting, actorOf, type Desk, notFound, pageLimit } from './context.js'

export interface GroupListOptions {
  readonly limit?: number
  readonly cursor?: string
  readonly sort?: GroupSort
}

/** Changing a group: `version` is the one you saw; with another one nothing is changed. */
export interface ChangingGroup extends Acting {
  readonly version?: number
}

export interface GroupView extends Group, GroupDetail {
  /** The fingerprints it speaks for, its own first. */
  readonly members: readonly string[]
}

export function groups({ db }: Desk) {
  const get = async (id: string): Promise<GroupView> => {
    checkText('id', id)
    await makeGroups(db)
    const found = await findGroup(db, id)
    return { ...found, members: await membersOf(db, found.id), ...(await groupDetail(db, found.id)) }
  }

  return {
    /** The one that failed last first, or, by `sort`, the one that failed most. Merged ones are within their group. */
    async list(filter: GroupFilter = {}, options: GroupListOptions = {}): Promise<Page<Group>> {
      checkFilter(filter)
      const { sort = 'lastSeen', cursor } = options
      if (!GROUP_SORTS.includes(sort)) throw invalid('sort', sort, `one of ${GROUP_SORTS.join(', ')}`)
      if (cursor !== undefined && !isGroupCursor(cursor)) throw invalid('cursor', cursor, 'one that a list returned')
      const page = { limit: pageLimit(options.limit), sort, ...(cursor !== undefined && { cursor }) }
      await makeGroups(db)
      return listGroups(db, filter, page)
    },

    /** How many there are, of the 5,000 that failed last. */
    async count(filter: GroupFilter = {}): Promise<Count> {
      checkFilter(filter)
      return countGroups(db, filter)
    },

    /** One, by any fingerprint that belongs to it, with what it affects and how it looks. */
    get,

    /** Takes it on, resolves it, mutes it, notes something. */
    async update(id: string, change: GroupChange, changing: ChangingGroup = {}): Promise<GroupView> {
      checkText('id', id)
      const checked = checkChange(change)
      await makeGroups(db)
      const { id: head } = await findGroup(db, id)
      await db.transaction(async tx => {
        const was = only(await lockGroups(tx, [head]), head)
        checkVersion(was, changing.version)
        await changeGroup(tx, head, checked, actorOf(changing))
        await writeAudit(tx, {
          ...entry('update', head, changing),
          before: { ...beforeOf(was) },
          after: { ...checked },
        })
      })
      return get(head)
    },

    /** These are one cause: what failed of them, and will, counts for `into`. Nothing is rewritten; `split` undoes it. */
    async merge(into: string, from: readonly string[], changing: ChangingGroup = {}): Promise<GroupView> {
      const others = [...new Set(from)]
      for (const id of [into, ...others]) checkText('id', id)
      if (others.length < 1 || others.length > MOST_MERGED || others.includes(into)) {
        throw invalid('The groups to merge', others.join(', '), `1 to ${MOST_MERGED} others`)
      }
      await makeGroups(db)
      for (const id of [into, ...others]) await findGroup(db, id)
      await db.transaction(async tx => {
        const locked = await lockGroups(tx, [into, ...others])
        const head = only(locked, into)
        checkVersion(head, changing.version)
        const merged = others.map(id => only(locked, id))
        for (const { id, mergedInto } of [head, ...merged]) if (mergedInto !== null) throw isMerged(id, mergedInto)
        const moved: string[] = []
        for (const id of others) moved.push(...(await membersOf(tx, id)))
        const most = (await membersOf(tx, into)).length - 1 + moved.length
        if (most > MOST_MERGED) throw invalid(`Merged into ${into}, their number`, most, `at most ${MOST_MERGED}`)
        await pointGroups(tx, moved, into)
        await recountGroup(tx, into)
        await writeAudit(tx, { ...entry('merge', into, changing), after: { from: others } })
        for (const id of others) await writeAudit(tx, { ...entry('merge', id, changing), after: { into } })
      })
      return get(into)
    },

    /** Takes a fingerprint out of the group that it was merged into: it stands for itself again, with its own notes. */
    async split(fingerprint: string, changing: ChangingGroup = {}): Promise<GroupView> {
      checkText('fingerprint', fingerprint)
      const { id: head } = await findGroup(db, fingerprint)
      if (head === fingerprint) throw invalid('The fingerprint', fingerprint, 'one that was merged into another group')
      await db.transaction(async tx => {
        const locked = await lockGroups(tx, [head, fingerprint])
        checkVersion(only(locked, head), changing.version)
        if (only(locked, fingerprint).mergedInto !== head) throw changedMeanwhile(fingerprint)
        await pointGroups(tx, [fingerprint], null)
        for (const id of [head, fingerprint]) await recountGroup(tx, id)
        await writeAudit(tx, { ...entry('split', fingerprint, changing), before: { into: head } })
        await writeAudit(tx, { ...entry('split', head, changing), after: { without: fingerprint } })
      })
      return get(fingerprint)
    },
  }
}

export type Groups = ReturnType<typeof groups>

/** By any fingerprint that belongs to it. `makeGroups` passes over what another connection is making: that is waited for. */
async function findGroup(db: Queryable, id: string): Promise<Group> {
  const found = (await getGroup(db, id)) ?? ((await groupIsMade(db, id)) ? await getGroup(db, id) : undefined)
  if (!found) throw notFound(`group ${id}`)
  return found
}

function only(locked: readonly LockedGroup[], id: string): LockedGroup {
  const found = locked.find(group => group.id === id)
  if (!found) throw notFound(`group ${id}`)
  return found
}

function checkVersion(was: LockedGroup, version: number | undefined): void {
  if (version !== undefined && was.version !== version) throw changedMeanwhile(was.id, was.version)
}

const changedMeanwhile = (id: string, version?: number): RedriveError =>
  new RedriveError(
    'VERSION_CONFLICT',
    `Group ${id} was changed meanwhile${version ? `; it is at version ${version}` : ''}`,
    {
      details: { id, ...(version !== undefined && { version }) },
    },
  )

const isMerged = (id: string, into: string): RedriveError =>
  new RedriveError('SETTING_INVALID', `Group ${id} is merged into ${into}; merge that one, or split it first`)

const beforeOf = ({ status, assignee, priority, notes }: GroupBefore): GroupBefore => ({
  status,
  assignee,
  priority,
  notes,
})

const entry = (action: string, target: string, acting: Acting): AuditEntry => ({
  actor: actorOf(acting),
  action,
  targetType: 'group',
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})

function checkText(what: string, text: unknown): void {
  if (!(typeof text === 'string' && text.length >= 1 && text.length <= LIMITS.keyChars && !text.includes('\0'))) {
    throw invalid(what, text, `text of at most ${LIMITS.keyChars} characters`)
  }
}

const FILTERS: Readonly<Record<keyof GroupFilter, true>> = {
  status: true,
  regressed: true,
  kind: true,
  service: true,
  assignee: true,
  queue: true,
  text: true,
}

function checkFilter(filter: GroupFilter): void {
  const unknown = Object.keys(filter).find(key => !Object.hasOwn(FILTERS, key))
  if (unknown !== undefined) throw invalid('A filter', unknown, `one of ${Object.keys(FILTERS).join(', ')}`)
  const { status, regressed, kind, ...texts } = filter
  checkStatus(status)
  if (regressed !== undefined && typeof regressed !== 'boolean') throw invalid('regressed', regressed, 'true or false')
  if (kind !== undefined && !isKind(kind)) throw invalid('kind', kind, `one of ${KINDS.join(', ')}`)
  for (const [what, text] of Object.entries(texts)) if (text !== undefined) checkText(what, text)
}

function checkStatus(status: GroupChange['status']): void {
  if (status !== undefined && !GROUP_STATUSES.includes(status)) {
    throw invalid('status', status, `one of ${GROUP_STATUSES.join(', ')}`)
  }
}

function checkChange(change: GroupChange): GroupChange {
  const { status, assignee, priority, notes, ...unknown } = change
  const [misspelt] = Object.keys(unknown)
  if (misspelt !== undefined) throw invalid('A change', misspelt, 'one of status, assignee, priority, notes')
  checkStatus(status)
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 10)) {
    throw invalid('priority', priority, 'a whole number from 0 to 10')
  }
  for (const [what, text] of Object.entries({ assignee, notes })) {
    if (text !== undefined && text !== null && typeof text !== 'string') throw invalid(what, text, 'text, or null')
  }
  const checked = {
    ...(status !== undefined && { status }),
    ...(assignee !== undefined && { assignee: assignee === null ? null : cap(assignee, LIMITS.nameChars) }),
    ...(priority !== undefined && { priority }),
    ...(notes !== undefined && { notes: notes === null ? null : cap(notes, LIMITS.notesChars) }),
  }
  if (Object.keys(checked).length === 0) throw invalid('A change', 'empty', 'one of status, assignee, priority, notes')
  return checked
}
