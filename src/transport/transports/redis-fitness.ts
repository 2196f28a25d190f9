// Whether a Redis is fit to carry jobs: new enough, and not one that throws keys away when its memory is full.
import { RedriveError } from '../../domain/errors.js'

/** XPENDING IDLE and LMOVE came with it. Valkey says the version of Redis that it is like. */
const OLDEST = [6, 2] as const

/** What is wrong with it, from its own INFO; undefined: nothing. */
export function unfitness(info: string): RedriveError | undefined {
  const said = new Map(
    info.split('\r\n').map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1)]
    }),
  )
  const version = said.get('redis_version')
  if (version !== undefined && isOlder(version)) {
    return new RedriveError(
      'SETTING_INVALID',
      `This Redis is version ${version}; it must be ${OLDEST.join('.')} or newer`,
    )
  }
  const policy = said.get('maxmemory_policy')
  if (policy?.startsWith('allkeys') && said.get('maxmemory') !== '0') {
    const message = `The maxmemory-policy of this Redis is ${policy}: it throws jobs away when its memory is full; it must be noeviction`
    return new RedriveError('SETTING_INVALID', message)
  }
  return undefined
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
}
