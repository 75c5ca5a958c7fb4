-- Forgets a batch that was delivered.
-- KEYS: batches, the batch, shares. ARGV: batch id.
--
-- Not MULTI: a Redis that is full takes nothing into one, not even what would make room.

redis.call('DEL', KEYS[2])
redis.call('HDEL', KEYS[3], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])
