-- Deletes a pool of too few, and counts them; answers how many.
-- KEYS: pool, law. ARGV: the minimum batch.
--
-- Where it is hidden how many reports there are, or name each value, what would hide them goes, too: so
-- nothing leaves after this, however much still comes. Said before anything is gone.

local few = redis.call('SCARD', KEYS[1])
if few == 0 or few >= tonumber(ARGV[1]) then return 0 end
local noise, named = unpack(redis.call('HMGET', KEYS[2], 'noise', 'named'))
if noise or named then redis.call('HSETNX', KEYS[2], 'left', '') end
redis.call('DEL', KEYS[1])
redis.call('HINCRBY', KEYS[2], 'withheld', few)
return few
