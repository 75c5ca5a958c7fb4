-- The terms of a window: acknowledged, pooled, in flight, withheld; nothing if there is no such window.
-- KEYS: pool, batches, law, crowds. ARGV: what the keys of its batches begin with, and of its crowds.

if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local flying = 0
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local crowds = redis.call('HGETALL', KEYS[4])
for place = 1, #crowds, 2 do
  flying = flying + redis.call('SCARD', ARGV[2] .. crowds[place])
  local cuts, secret = string.match(crowds[place + 1], '^(%d+):(%x+)$')
  for cut = 0, (tonumber(cuts) or 0) - 1 do
    local id = string.sub(redis.sha1hex(secret .. ':' .. cut), 1, 32)
    if redis.call('HEXISTS', KEYS[2], id) == 0 then
      flying = flying + redis.call('SCARD', ARGV[1] .. id)
    end
  end
end
local law = redis.call('HMGET', KEYS[3], 'acknowledged', 'withheld')
return {law[1] or '0', redis.call('SCARD', KEYS[1]), flying, law[2] or '0'}
