-- Moves some of a crowd into its cuts; answers where to look for more, and when none was left, makes
-- every cut a batch in flight, forgets the crowd and answers nothing.
-- KEYS: crowds, the crowd, batches, the crowd's dummies, pool, shares, law. ARGV: the crowd's id, what
-- the keys of batches begin with, about how many to move, owner, how many seconds dummies are kept,
-- where to look, "0" to begin with.
--
-- A keyed hash of the report, all of it, says which cut it goes to: whoever does not know the secret,
-- and who no longer does, sees a uniform draw; and nobody can send many that meet in one. A step that
-- is cut off is repeated with the same outcome: a report is in its cut before it leaves the crowd, and
-- a cut that was delivered is there no more.
--
-- The set is scanned on from where the last step left it: a random member of a large one that is
-- nearly empty would be found by looking into many places that are.
--
-- Dummies go first, so they are never there without the crowd's reports, unless half of leave.lua came
-- back after a crash (docs/decisions/0222); and nothing is cut if some are missing. A cut is told its
-- share of all dummies, those that are expected among its reports too, by its size alone: how many it
-- really has would make it a crowd of its own.
-- Shares are written, then the law, then any batch: as long as the law does not know of the dummies,
-- all cuts are whole.

local kept = redis.call('HGET', KEYS[1], ARGV[1])
if not kept then return false end
local cuts, secret, dummies, hidden = string.match(kept, '^(%d+):(%x+):?(%d*):?(%d*)$')
cuts, dummies, hidden = tonumber(cuts), tonumber(dummies) or 0, tonumber(hidden) or 0
redis.call('HDEL', KEYS[1], '')
local function batch(cut) return string.sub(redis.sha1hex(secret .. ':' .. cut), 1, 32) end
local function is_cut_up()
  if redis.call('HEXISTS', KEYS[7], 'dummies:' .. ARGV[1]) == 1 then return true end
  for cut = 0, cuts - 1 do
    if redis.call('EXISTS', ARGV[2] .. batch(cut)) == 1 then return true end
  end
  return false
end
local held, padded = redis.call('EXISTS', KEYS[2]), redis.call('SCARD', KEYS[4])
if padded > 0 and held == 0 or padded < dummies and not is_cut_up() then
  redis.call('EXPIRE', KEYS[4], ARGV[5])
  if held == 1 then
    redis.call('SUNIONSTORE', KEYS[5], KEYS[5], KEYS[2])
    redis.call('DEL', KEYS[2])
  end
  if hidden > 0 then redis.call('HDEL', KEYS[7], 'left') end
  redis.call('HDEL', KEYS[1], ARGV[1])
  return false
end
local function cut_of(report)
  local hash = redis.sha1hex(secret .. report)
  return (tonumber(string.sub(hash, 1, 6), 16) * 16777216 + tonumber(string.sub(hash, 7, 12), 16)) % cuts
end
local function move(from, some)
  local of_cut = {}
  for _, report in ipairs(some) do
    local cut = cut_of(report)
    local others = of_cut[cut]
    if others then others[#others + 1] = report else of_cut[cut] = {report} end
  end
  for cut, reports in pairs(of_cut) do
    redis.call('SADD', ARGV[2] .. batch(cut), unpack(reports))
  end
  redis.call('SREM', from, unpack(some))
end
if padded > 0 or held == 1 then
  local from = padded > 0 and KEYS[4] or KEYS[2]
  local place, some = ARGV[6], nil
  repeat
    place, some = unpack(redis.call('SSCAN', from, place, 'COUNT', ARGV[3]))
  until #some > 0 or place == '0'
  for first = 1, #some, 4000 do
    move(from, {unpack(some, first, math.min(first + 3999, #some))})
  end
  return place
end
local sizes, all = {}, 0
for cut = 0, cuts - 1 do
  sizes[cut] = redis.call('SCARD', ARGV[2] .. batch(cut))
  all = all + sizes[cut]
end
if dummies + hidden > 0 and all > 0 and redis.call('HEXISTS', KEYS[7], 'dummies:' .. ARGV[1]) == 0 then
  local passed, told = 0, 0
  for cut = 0, cuts - 1 do
    passed = passed + sizes[cut]
    local until_here = math.floor((dummies + hidden) * passed / all)
    if until_here > told then redis.call('HSET', KEYS[6], batch(cut), until_here - told) end
    told = until_here
  end
  redis.call('HSET', KEYS[7], 'dummies:' .. ARGV[1], dummies)
end
for cut = 0, cuts - 1 do
  if sizes[cut] > 0 then redis.call('HSET', KEYS[3], batch(cut), ARGV[4]) end
end
redis.call('HDEL', KEYS[1], ARGV[1])
return false
