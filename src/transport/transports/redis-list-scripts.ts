// The steps of redis-list.ts that Redis takes in one. A member's sign of life is given with each of them, by the clock of
// Redis: machines may disagree about the time.
import type { Script } from './redis-scripts.js'

const ALIVE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', members, now, me)`

/** KEYS: list, arrived, tickets, members. ARGV: member, most bytes, tickets to give. Answers { ticket, text, bytes } each. */
export const TAKE_FROM_LIST: Script = {
  name: 'takeFromList',
  lua: `
  local list, arrived, tickets, members = unpack(KEYS)
  local me, most = ARGV[1], tonumber(ARGV[2])
  ${ALIVE}
  local taken = {}
  for at = 3, #ARGV do
    local text = redis.call('LPOP', arrived) or redis.call('LPOP', list)
    if not text then break end
    redis.call('HSET', tickets, ARGV[at], text)
    taken[#taken + 1] = { ARGV[at], string.sub(text, 1, most), #text }
  end
  return taken`,
}

/** KEYS: tickets. ARGV: those that are done. */
export const DONE: Script = { name: 'done', lua: "return redis.call('HDEL', KEYS[1], unpack(ARGV))" }

/**
 * KEYS: list, tickets, members. ARGV: member, most bytes, silent for (ms), what the keys of members begin with. Takes over
 * from members that are dead, a few at a time. Answers as above.
 */
export const ADOPT: Script = {
  name: 'adopt',
  lua: `
  local list, tickets, members = unpack(KEYS)
  local me, most = ARGV[1], tonumber(ARGV[2])
  ${ALIVE}
  local adopted = {}
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', members, '-inf', now - tonumber(ARGV[3]), 'LIMIT', 0, 10)) do
    if dead ~= me then
      local arrived, left = ARGV[4] .. dead .. ':arrived', ARGV[4] .. dead .. ':tickets'
      local entry = redis.call('RPOP', arrived)
      local pairs = redis.call('HGETALL', left)
      -- Looked at once more before it is forgotten: what it was waiting for may have come to it after its death.
      if not entry and #pairs == 0 then redis.call('ZREM', members, dead) end
      while entry do
        redis.call('LPUSH', list, entry)
        entry = redis.call('RPOP', arrived)
      end
      for at = 1, #pairs, 2 do
        redis.call('HSET', tickets, pairs[at], pairs[at + 1])
        adopted[#adopted + 1] = { pairs[at], string.sub(pairs[at + 1], 1, most), #pairs[at + 1] }
      end
      redis.call('DEL', left)
    end
  end
  return adopted`,
}

/**
 * KEYS: list, arrived, tickets, members. ARGV: member. What was not looked at goes back to the front of the list; what has
 * a ticket still is left for others at once; who looks at it last forgets the member.
 */
export const LEAVE_LIST: Script = {
  name: 'leaveList',
  lua: `
  local list, arrived, _, members = unpack(KEYS)
  local entry = redis.call('RPOP', arrived)
  while entry do
    redis.call('LPUSH', list, entry)
    entry = redis.call('RPOP', arrived)
  end
  redis.call('ZADD', members, 0, ARGV[1])
  return 1`,
}
