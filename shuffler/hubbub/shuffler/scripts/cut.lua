-- Moves some reports of a crowd into its cuts; answers how many are left, and when none was, makes
-- every cut a batch in flight and forgets the crowd.
-- KEYS: crowds, the crowd, batches. ARGV: the crowd's id, what the keys of batches begin with, how
-- many to move, owner.
--
-- A keyed hash of the report says which cut it goes to: whoever does not know the secret, and who no
-- longer does, sees a uniform draw. A step that is cut off is repeated with the same outcome: a
-- report is in its cut before it leaves the crowd, and a cut that was delivered is there no more.

local kept = redis.call('HGET', KEYS[1], ARGV[1])
if not kept then return 0 end
local cuts, secret = string.match(kept, '^(%d+):(%x+)$')
cuts = tonumber(cuts)
redis.call('HDEL', KEYS[1], '')
local function key(cut)
  return ARGV[2] .. string.sub(redis.sha1hex(secret .. ':' .. cut), 1, 32)
end
local some = redis.call('SRANDMEMBER', KEYS[2], ARGV[3])
if #some > 0 then
  local of_cut = {}
  for _, report in ipairs(some) do
    local hash = redis.sha1hex(secret .. report)
    local high, low = string.sub(hash, 1, 6), string.sub(hash, 7, 12)
    local cut = (tonumber(high, 16) * 16777216 + tonumber(low, 16)) % cuts
    of_cut[cut] = of_cut[cut] or {}
    table.insert(of_cut[cut], report)
  end
  for cut, reports in pairs(of_cut) do
    redis.call('SADD', key(cut), unpack(reports))
  end
  redis.call('SREM', KEYS[2], unpack(some))
  return redis.call('SCARD', KEYS[2]) + 1
end
for cut = 0, cuts - 1 do
  local name = key(cut)
  if redis.call('EXISTS', name) == 1 then
    redis.call('HSET', KEYS[3], string.sub(name, #ARGV[2] + 1), ARGV[4])
  end
end
redis.call('HDEL', KEYS[1], ARGV[1])
return 0
