-- The terms of a window: acknowledged, dummies, pooled, in flight, withheld; nothing if there is no
-- such window.
-- KEYS: pool, batches, law, crowds. ARGV: what the keys of its batches begin with, of its crowds, and
-- of their dummies.

if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local law, dummies, flying = {}, 0, 0
local told = redis.call('HGETALL', KEYS[3])
for place = 1, #told, 2 do
  law[told[place]] = told[place + 1]
  if string.sub(told[place], 1, 8) == 'dummies:' then dummies = dummies + tonumber(told[place + 1]) end
end
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local crowds = redis.call('HGETALL', KEYS[4])
for place = 1, #crowds, 2 do
  local crowd = crowds[place]
  local cuts, secret, along = string.match(crowds[place + 1], '^(%d+):(%x+):?(%d*):?%d*$')
  local held = redis.call('SCARD', ARGV[2] .. crowd)
  for cut = 0, (tonumber(cuts) or 0) - 1 do
    local id = string.sub(redis.sha1hex(secret .. ':' .. cut), 1, 32)
    if redis.call('HEXISTS', KEYS[2], id) == 0 then
      held = held + redis.call('SCARD', ARGV[1] .. id)
    end
  end
  -- Dummies without a report go nowhere (cut.lua); those of a crowd that is cut up are in the law.
  if held > 0 then
    flying = flying + held + redis.call('SCARD', ARGV[3] .. crowd)
    if not law['dummies:' .. crowd] then dummies = dummies + (tonumber(along) or 0) end
  end
end
return {law.acknowledged or '0', dummies, redis.call('SCARD', KEYS[1]), flying, law.withheld or '0'}
