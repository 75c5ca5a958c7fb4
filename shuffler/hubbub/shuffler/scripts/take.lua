-- Moves random reports of the pool into a new batch; answers how many, or 0 if there are too few.
-- KEYS: pool, batches, the batch, law. ARGV: batch id, how many, how many the pool must hold, owner,
-- the number of takes when this was decided.
--
-- Asked a second time for the same id, it was taken the first time. And what arrives late, after
-- the batch was delivered, finds that the window's number of takes has gone on: an id that the
-- aggregator has counted is never filled again. A report is in the batch before it leaves the
-- pool: if only the first of these commands come back after a crash, it is in both, not in neither.

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
