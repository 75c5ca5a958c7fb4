-- Sets a pool apart as a crowd that leaves whole; answers how many reports, or 0 if there are too few.
-- KEYS: pool, crowds, the crowd, law. ARGV: the crowd's id, how many the pool must hold, how many
-- reports a cut has about, a secret, the number of takes when this was decided.
--
-- Who is in it is fixed by this, and the secret fixes which of them go together. As in take.lua, what
-- is asked twice happens once, and what comes late finds that the number of takes has gone on.

if redis.call('EXISTS', KEYS[3]) == 1 then return redis.call('SCARD', KEYS[3]) end
if (redis.call('HGET', KEYS[4], 'takes') or '0') ~= ARGV[5] then return 0 end
local pooled = redis.call('SCARD', KEYS[1])
if pooled < tonumber(ARGV[2]) then return 0 end
redis.call('HDEL', KEYS[2], '')
redis.call('HSET', KEYS[2], ARGV[1], math.ceil(pooled / tonumber(ARGV[3])) .. ':' .. ARGV[4])
redis.call('HINCRBY', KEYS[4], 'takes', 1)
redis.call('RENAME', KEYS[1], KEYS[3])
return pooled
