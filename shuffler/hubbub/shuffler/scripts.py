"""The pool's steps, each a Lua script on the keys of one window; pool.py says which keys."""

from typing import Final

__all__ = ["ADD", "COUNTS", "DELIVERED", "HOLD", "TAKE", "WITHHOLD"]

ADD: Final = """
local added = redis.call('SADD', KEYS[1], unpack(ARGV))
redis.call('HINCRBY', KEYS[2], 'acknowledged', added)
return added
"""

# Asked a second time for the same id, it was taken the first time.
TAKE: Final = """
if redis.call('EXISTS', KEYS[3]) == 1 then return redis.call('SCARD', KEYS[3]) end
local pooled = redis.call('SCARD', KEYS[1])
if pooled < tonumber(ARGV[3]) or pooled > tonumber(ARGV[4]) then return 0 end
local left, taken = tonumber(ARGV[2]), 0
while left > 0 do
  local some = redis.call('SPOP', KEYS[1], math.min(left, 4000))
  if #some == 0 then break end
  redis.call('SADD', KEYS[3], unpack(some))
  left, taken = left - #some, taken + #some
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[5])
return taken
"""

# Writes, so that a reader who waits for replicas waits for the batch's own making, too; and first
# deletes, since a Redis that is full lets only scripts go on that did not begin by adding.
HOLD: Final = """
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner ~= ARGV[2] and owner ~= ARGV[3] then return {} end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('SMEMBERS', KEYS[2])
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

COUNTS: Final = """
if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local flying = 0
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local law = redis.call('HMGET', KEYS[3], 'acknowledged', 'withheld')
return {tonumber(law[1] or 0), redis.call('SCARD', KEYS[1]), flying, tonumber(law[2] or 0)}
"""
