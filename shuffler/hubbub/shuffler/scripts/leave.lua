-- Sets a pool apart as a crowd that leaves whole; answers how many reports, 0 if there are too few,
-- -1 if the pool is not as it was.
-- KEYS: pool, crowds, the crowd, law, the crowd's dummies, gathering. ARGV: the crowd's id, how many
-- the pool must hold, how many reports a cut has about, a secret, the number of takes when this was
-- decided, how many dummies go along, shards: how many the crowd is gathered from, if this is the
-- first of them; 0 for another; how many dummies are expected among the reports, where their number is
-- hidden, and 0 where it is not.
--
-- Who is in it is fixed by this, and the secret fixes which of them go together. As in take.lua, what
-- is asked twice happens once, and what comes late finds that the number of takes has gone on. The
-- dummies have the crowd's name already, so nothing of this moves them.
--
-- A crowd of several shards is being gathered until every one has been set apart: the first says so
-- before anything moves, and each remembers last of all that it was, since its part may be cut up and
-- gone when somebody asks again. A crowd whose number is hidden leaves once: what comes late would have
-- no dummies to hide among.

local shards, hidden = tonumber(ARGV[7]), tonumber(ARGV[8])
if redis.call('EXISTS', KEYS[3]) == 1 then
  if shards ~= 1 or hidden > 0 then redis.call('HSET', KEYS[4], 'left', ARGV[1]) end
  return redis.call('SCARD', KEYS[3])
end
local before = redis.call('HGET', KEYS[4], 'left')
if before == ARGV[1] or before and hidden > 0 then return 0 end
if (redis.call('HGET', KEYS[4], 'takes') or '0') ~= ARGV[5] then return -1 end
local pooled, dummies = redis.call('SCARD', KEYS[1]), tonumber(ARGV[6])
if pooled < tonumber(ARGV[2]) then return 0 end
if redis.call('SCARD', KEYS[5]) ~= dummies then return 0 end
if shards > 1 and redis.call('EXISTS', KEYS[6]) == 1 then return 0 end
redis.call('HDEL', KEYS[2], '')
if shards > 1 then redis.call('HSET', KEYS[6], ARGV[1], shards) end
local kept = math.ceil((pooled + dummies) / tonumber(ARGV[3])) .. ':' .. ARGV[4]
if dummies + hidden > 0 then kept = kept .. ':' .. dummies end
if hidden > 0 then kept = kept .. ':' .. hidden end
if dummies > 0 then redis.call('PERSIST', KEYS[5]) end
if pooled > 0 then redis.call('HSET', KEYS[2], ARGV[1], kept) end
redis.call('HINCRBY', KEYS[4], 'takes', 1)
if pooled > 0 then redis.call('RENAME', KEYS[1], KEYS[3]) end
if shards ~= 1 or hidden > 0 then redis.call('HSET', KEYS[4], 'left', ARGV[1]) end
return pooled
