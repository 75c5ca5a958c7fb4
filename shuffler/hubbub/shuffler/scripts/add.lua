-- Puts sealed reports into the pool, each once; answers how many were new.
-- KEYS: pool, law. ARGV: sealed reports.

local added = redis.call('SADD', KEYS[1], unpack(ARGV))
redis.call('HINCRBY', KEYS[2], 'acknowledged', added)
return added
