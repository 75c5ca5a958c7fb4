-- Deletes a pool of too few, and counts them; answers how many.
-- KEYS: pool, law. ARGV: the minimum batch.

local few = redis.call('SCARD', KEYS[1])
if few == 0 or few >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HINCRBY', KEYS[2], 'withheld', few)
return few
