/** Most that one script clears away. */
const MOST_CLEARED = 200;

/**
 * What scripts begin with that count what an owner has: how much it is, and when each of it goes. The first of their KEYS
 * are its ids by when they were made (epoch ms), its ids by when they go (epoch ms), the bytes of each, and their sum.
 *
 * - `discount(id)` counts it no more; for one that does not count it does nothing.
 * - `clear_lapsed(now)` counts those no more whose time is over, the earliest first, but not all where they are many.
 * - `first_to_go(now)` is when the first of them goes, as a string; now where there are none.
 * - `live_for(ms)` has the keys live for so long, or longer where they do already.
 */
export const OWNER_COUNTS = `
local function discount(id)
  local freed = redis.call('HGET', KEYS[3], id)
  if freed then redis.call('DECRBY', KEYS[4], freed) end
  redis.call('HDEL', KEYS[3], id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZREM', KEYS[1], id)
end
local function clear_lapsed(now)
  local lapsed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ${MOST_CLEARED})
  for _, id in ipairs(lapsed) do discount(id) end
end
local function first_to_go(now)
  return redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or now
end
local function live_for(ms)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms, 'NX') redis.call('PEXPIRE', key, ms, 'GT') end
end
`;
