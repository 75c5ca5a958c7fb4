-- Forgets the secret numbers of a window whose crowd has left or was withheld, if any were drawn.
-- KEYS: law. ARGV: "1" if nothing may leave from now on, whatever did before.
--
-- One write: the dummies become reports that were acknowledged, so the law balances without them. The
-- fields stay, empty, so nobody draws again, and nothing that comes later has dummies to hide among.

local left, noise, named = unpack(redis.call('HMGET', KEYS[1], 'left', 'noise', 'named'))
if not (noise or named) or not left and ARGV[1] ~= '1' then return 0 end
redis.call('HDEL', KEYS[1], '')
local terms = redis.call('HMGET', KEYS[1], 'acknowledged', 'dummies:noise')
local all = (tonumber(terms[1]) or 0) + (tonumber(terms[2]) or 0)
redis.call('HSET', KEYS[1], 'acknowledged', all, 'dummies:noise', 0, 'noise', '', 'named', '', 'left', left or '')
return 1
