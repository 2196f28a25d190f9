// A group: one cause of failure, whom it affects, and who looks after it.
import type { Group } from '../answers.js'
import type { Style } from '../style.js'
import { moment } from '../time.js'
import { fields, section, stackLines, title } from './fields.js'

type Shares = Group['queues']

export function groupStory(group: Group, now: number, style: Style): string[] {
  const [sample] = group.samples
  const counted = ({ value, exact }: Group['dead']) => `${value}${exact ? '' : ' or more'}`
  return [
    title(group.title, style),
    ...fields(
      [
        ['group', group.id],
        ['status', group.regressed ? `${group.status}, regressed` : group.status],
        ['kind', group.kind],
        ['service', group.service],
        ['dead', counted(group.dead)],
        ['retrying', counted(group.retrying)],
        [
          'failures',
          `${group.failures}, ${group.deaths} of them deaths; ${Math.round(group.perMinute * 100) / 100} a minute lately`,
        ],
        ['first seen', moment(group.firstSeen, now)],
        ['last seen', moment(group.lastSeen, now)],
        ['queues', shares(group.queues)],
        ['jobs', shares(group.names)],
        ['tenants', shares(group.tenants)],
        ['versions', shares(group.versions)],
        ['assignee', group.assignee],
        ['priority', group.priority],
        ['notes', group.notes],
        ['resolved', group.resolvedAt && `${moment(group.resolvedAt, now)} by ${group.resolvedBy ?? 'somebody'}`],
      ],
      style,
    ),
    ...(sample
      ? section(
          'Latest',
          [
            ...fields(
              [
                ['job', `${sample.name} ${sample.job}`],
                ['at', moment(sample.at, now)],
                ['error', sample.message],
              ],
              style,
            ),
            ...stackLines(sample.stack),
          ],
          style,
        )
      : []),
  ]
}

const shares = (all: Shares): string => all.map(({ value, count }) => `${value} (${count})`).join(', ')
