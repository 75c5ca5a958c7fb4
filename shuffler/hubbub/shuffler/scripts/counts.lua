-- The terms of a window: acknowledged, pooled, in flight, withheld; nothing if there is no such window.
-- KEYS: pool, batches, law. ARGV: what the keys of its batches begin with.

if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local flying = 0
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local law = redis.call('HMGET', KEYS[3], 'acknowledged', 'withheld')
return {law[1] or '0', redis.call('SCARD', KEYS[1]), flying, law[2] or '0'}
