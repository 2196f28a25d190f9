// What is done in Redis in one step, as scripts: between a look and an act nobody else can come. Every write about an
// entry first looks whose it is (INVARIANT: only its holder may settle it or keep it), because XACK and XCLAIM do not ask.
//
// Plain Redis 6.2 and Valkey: no functions, no newer options. Keys are always given as keys.
import { GROUP, PARKED } from './redis-streams.js'

export interface Script {
  readonly name: string
  readonly lua: string
}

const script = (name: string, lua: string): Script => ({ name, lua })

const NAMES = `local group, parked = '${GROUP}', '${PARKED}'`

/** More than anyone has in hand. */
const MOST_IN_HAND = 100_000

/** Runs of ids, for commands that take many: Lua hands over some thousand arguments at most. */
const IN_RUNS = `
  local function in_runs(ids, act)
    for from = 1, #ids, 1000 do act(unpack(ids, from, math.min(from + 999, #ids))) end
  end`

/** KEYS: streams. ARGV: for each message the index of its stream, the number of its words, and its words. */
export const PUBLISH = script(
  'publish',
  `
  local at = 1
  while at < #ARGV do
    local words = tonumber(ARGV[at + 1])
    redis.call('XADD', KEYS[tonumber(ARGV[at])], '*', unpack(ARGV, at + 2, at + 1 + words))
    at = at + 2 + words
  end
  return 1`,
)

/** KEYS: streams. Makes the group where it is missing; from the very first entry on. */
export const FOUND = script(
  'found',
  `
  ${NAMES}
  for _, key in ipairs(KEYS) do
    local answer = redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
    if answer.err and not string.find(answer.err, 'BUSYGROUP') then return answer end
  end
  return 1`,
)

/**
 * KEYS: streams, first in line first. ARGV: consumer, how many at most, how many of them out of turn, and from which
 * stream on those are looked for. Answers { stream, id, deliveries before, fields, 1 if out of turn } each.
 */
export const TAKE = script(
  'take',
  `
  ${NAMES}
  local me, most = ARGV[1], tonumber(ARGV[2])
  local taken, early = {}, 1
  local function take(index, many)
    local key, before = KEYS[index], #taken
    local back = redis.call('XPENDING', key, group, '-', '+', many, parked)
    for _, pending in ipairs(back) do
      local entry = redis.call('XCLAIM', key, group, me, 0, pending[1])[1]
      if entry and entry[2] then taken[#taken + 1] = { index, entry[1], pending[4], entry[2], early }
      else redis.call('XACK', key, group, pending[1]) end
    end
    many = many - (#taken - before)
    if many > 0 then
      local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', many, 'STREAMS', key, '>')
      if read then
        for _, entry in ipairs(read[1][2]) do taken[#taken + 1] = { index, entry[1], 0, entry[2], early } end
      end
    end
    return #taken - before
  end
  local start = tonumber(ARGV[4])
  for _ = 1, math.min(most, tonumber(ARGV[3])) do
    for step = 0, #KEYS - 1 do
      if take((start + step) % #KEYS + 1, 1) > 0 then break end
    end
  end
  early = 0
  for index = 1, #KEYS do
    if #taken >= most then break end
    take(index, most - #taken)
  end
  return taken`,
)

/**
 * KEYS: streams. ARGV: consumer, how many at most, how long (ms) nobody has touched them. Takes over what dead consumers
 * hold; answers { stream, id, whose it was, deliveries before, fields } each.
 */
export const CLAIM = script(
  'claim',
  `
  ${NAMES}
  local me, most = ARGV[1], tonumber(ARGV[2])
  local taken = {}
  for index, key in ipairs(KEYS) do
    if #taken >= most then break end
    for _, pending in ipairs(redis.call('XPENDING', key, group, 'IDLE', ARGV[3], '-', '+', most + 100)) do
      if pending[2] ~= parked and #taken < most then
        local entry = redis.call('XCLAIM', key, group, me, 0, pending[1])[1]
        if entry and entry[2] then taken[#taken + 1] = { index, entry[1], pending[2], pending[4], entry[2] }
        else redis.call('XACK', key, group, pending[1]) end
      end
    end
  end
  return taken`,
)

/**
 * Looks whose entries are. KEYS: streams. ARGV: consumer, then for each stream how many entries and their ids, in order.
 * `mine` gets the entries of this consumer by stream. Answers those that another has, or that wait in line: { stream, id }
 * each. What is not in the stream any more is nobody's: it was settled before, or Redis lost it.
 */
const ownedBy = (mine: string) => `
  ${NAMES}
  ${IN_RUNS}
  local me, others, at = ARGV[1], {}, 2
  for index, key in ipairs(KEYS) do
    local last = at + tonumber(ARGV[at])
    local held = {}
    for _, pending in ipairs(redis.call('XPENDING', key, group, ARGV[at + 1], ARGV[last], ${MOST_IN_HAND}, me)) do
      held[pending[1]] = true
    end
    local ids = {}
    for place = at + 1, last do
      local id = ARGV[place]
      if held[id] then ids[#ids + 1] = id
      elseif #redis.call('XRANGE', key, id, id) > 0 then others[#others + 1] = { index, id } end
    end
    if #ids > 0 then
      ${mine}
    end
    at = last + 1
  end
  return others`

/** Settled: forgotten. */
export const ACKNOWLEDGE = script(
  'acknowledge',
  ownedBy(`
    in_runs(ids, function(...) redis.call('XACK', key, group, ...) redis.call('XDEL', key, ...) end)`),
)

/** Still in hand: nobody may take them over for a while. JUSTID leaves the count of deliveries alone. */
export const KEEP = script(
  'keep',
  ownedBy(`
    for from = 1, #ids, 1000 do
      local run = { unpack(ids, from, math.min(from + 999, #ids)) }
      run[#run + 1] = 'JUSTID'
      redis.call('XCLAIM', key, group, me, 0, unpack(run))
    end`),
)

/** Back in line, at their old place. */
const park = (retryCount: 0 | 1) =>
  ownedBy(`
    for _, id in ipairs(ids) do
      redis.call('XCLAIM', key, group, parked, 0, id, 'RETRYCOUNT', ${retryCount}, 'JUSTID')
    end`)

/** Given back by somebody who surely did nothing with them. */
export const PARK_UNTOUCHED = script('parkUntouched', park(0))
/** Given back by somebody who may have begun. */
export const PARK_TOUCHED = script('parkTouched', park(1))

/** KEYS: streams. ARGV: consumer. Answers { stream, id, deliveries } of all that is in its name. */
export const HELD = script(
  'held',
  `
  ${NAMES}
  local held = {}
  for index, key in ipairs(KEYS) do
    for _, pending in ipairs(redis.call('XPENDING', key, group, '-', '+', ${MOST_IN_HAND}, ARGV[1])) do
      held[#held + 1] = { index, pending[1], pending[4] }
    end
  end
  return held`,
)

/** KEYS and ARGV as above. Answers { stream, id, fields } each. */
export const READ = script(
  'read',
  `
  local read, at = {}, 2
  for index, key in ipairs(KEYS) do
    local last = at + tonumber(ARGV[at])
    for place = at + 1, last do
      local entry = redis.call('XRANGE', key, ARGV[place], ARGV[place])[1]
      if entry then read[#read + 1] = { index, entry[1], entry[2] } end
    end
    at = last + 1
  end
  return read`,
)

/** KEYS: streams. ARGV: consumer. What is still in its name goes back, and the name is gone. */
export const LEAVE = script(
  'leave',
  `
  ${NAMES}
  for _, key in ipairs(KEYS) do
    local left = redis.pcall('XPENDING', key, group, '-', '+', ${MOST_IN_HAND}, ARGV[1])
    if not left.err then
      for _, pending in ipairs(left) do
        local touched = pending[4] > 1 and 1 or 0
        redis.call('XCLAIM', key, group, parked, 0, pending[1], 'RETRYCOUNT', touched, 'JUSTID')
      end
      redis.call('XGROUP', 'DELCONSUMER', key, group, ARGV[1])
    end
  end
  return 1`,
)

/** KEYS: streams. ARGV: consumer, how long (ms) they were silent. Removes names of consumers that are gone and hold nothing. */
export const SWEEP = script(
  'sweep',
  `
  ${NAMES}
  local removed = 0
  for _, key in ipairs(KEYS) do
    for _, told in ipairs(redis.call('XINFO', 'CONSUMERS', key, group)) do
      local about = {}
      for at = 1, #told, 2 do about[told[at]] = told[at + 1] end
      local other = about.name ~= ARGV[1] and about.name ~= parked
      if other and about.pending == 0 and about.idle > tonumber(ARGV[2]) then
        redis.call('XGROUP', 'DELCONSUMER', key, group, about.name)
        removed = removed + 1
      end
    end
  end
  return removed`,
)

/** KEYS: streams. How many entries are in nobody's hands. */
export const DEPTH = script(
  'depth',
  `
  ${NAMES}
  local waiting = 0
  for _, key in ipairs(KEYS) do
    waiting = waiting + redis.call('XLEN', key)
    local pending = redis.pcall('XPENDING', key, group)
    if not pending.err and pending[1] > 0 then
      waiting = waiting - pending[1]
      for _, held in ipairs(pending[4]) do
        if held[1] == parked then waiting = waiting + tonumber(held[2]) end
      end
    end
  end
  return waiting`,
)
