-- Puts the dummies among which it is hidden how many reports there are, or name each value, into their
-- pool, once; answers whether they are there.
-- KEYS: pool, law, noise. ARGV: how many bytes one has.
--
-- All of them are kept as one text, which was written whole, and only if there was none: so what is
-- torn and asked again puts the same ones there. Dummies before the law: half of this is repeated, and
-- until the law knows of them nothing leaves.

if redis.call('HEXISTS', KEYS[2], 'dummies:noise') == 1 then return 1 end
local sealed, length = redis.call('HGET', KEYS[3], 'sealed'), tonumber(ARGV[1])
local noise, named = unpack(redis.call('HMGET', KEYS[2], 'noise', 'named'))
local number = tonumber(noise or 0)
for own in string.gmatch(named or '', '%d+') do number = number + own end
if not sealed or #sealed ~= number * length then return 0 end
for first = 1, #sealed, 4000 * length do
  local some = {}
  for at = first, math.min(first + 4000 * length, #sealed + 1) - 1, length do
    some[#some + 1] = string.sub(sealed, at, at + length - 1)
  end
  redis.call('SADD', KEYS[1], unpack(some))
end
redis.call('HSET', KEYS[2], 'dummies:noise', number)
return 1
