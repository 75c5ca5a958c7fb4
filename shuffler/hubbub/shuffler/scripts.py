"""The pool's steps, each a Lua script on the keys of one window; pool.py says which keys.

A Redis that is full lets a script go on that has begun to write, if it began by taking away: so
those that make room begin by deleting, if only a field that nobody has.
"""

from typing import Final

__all__ = ["ADD", "COUNTS", "DELIVERED", "HOLD", "POOLED", "TAKE", "WITHHOLD"]

ADD: Final = """
local added = redis.call('SADD', KEYS[1], unpack(ARGV))
redis.call('HINCRBY', KEYS[2], 'acknowledged', added)
return added
"""

# Asked a second time for the same id, it was taken the first time. And what arrives late, after
# the batch was delivered, finds that the window's number of takes has gone on: an id that the
# aggregator has counted is never filled again. A report is in the batch before it leaves the
# pool: if only the first of these commands come back after a crash, it is in both, not in neither.
TAKE: Final = """
if redis.call('EXISTS', KEYS[3]) == 1 then return redis.call('SCARD', KEYS[3]) end
if (redis.call('HGET', KEYS[4], 'takes') or '0') ~= ARGV[5] then return 0 end
local pooled = redis.call('SCARD', KEYS[1])
if pooled < tonumber(ARGV[3]) then return 0 end
redis.call('HDEL', KEYS[2], '')
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
redis.call('HINCRBY', KEYS[4], 'takes', 1)
local left, taken = tonumber(ARGV[2]), 0
while left > 0 do
  local some = redis.call('SRANDMEMBER', KEYS[1], math.min(left, 4000))
  if #some == 0 then break end
  redis.call('SADD', KEYS[3], unpack(some))
  redis.call('SREM', KEYS[1], unpack(some))
  left, taken = left - #some, taken + #some
end
return taken
"""

# Writes, so that a reader who waits for replicas waits for the batch's own making, too.
HOLD: Final = """
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner ~= ARGV[2] and owner ~= ARGV[3] then return {} end
redis.call('HDEL', KEYS[1], '')
local sealed = redis.call('SMEMBERS', KEYS[2])
if #sealed == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return {}
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return sealed
"""

# Not MULTI: a Redis that is full takes nothing into one, not even what would make room.
DELIVERED: Final = """
redis.call('DEL', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
"""

WITHHOLD: Final = """
local few = redis.call('SCARD', KEYS[1])
if few == 0 or few >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HINCRBY', KEYS[2], 'withheld', few)
return few
"""

POOLED: Final = """
return {redis.call('SCARD', KEYS[1]), redis.call('HGET', KEYS[2], 'takes') or '0'}
"""

COUNTS: Final = """
if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local flying = 0
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local law = redis.call('HMGET', KEYS[3], 'acknowledged', 'withheld')
return {law[1] or '0', redis.call('SCARD', KEYS[1]), flying, law[2] or '0'}
"""
