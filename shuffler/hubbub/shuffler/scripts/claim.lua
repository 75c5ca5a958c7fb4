-- The reports of a batch in flight, which is its new owner's from now on.
-- KEYS: batches, the batch. ARGV: batch id, owner, former owner.
--
-- Writes, so that a reader who waits for replicas waits for the batch's own making, too.

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
