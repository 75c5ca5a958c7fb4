-- The commit of a batch: whole or not at all, on the keys of a window's shard.
--
-- What a batch changes is one HSET of all fields, absolute; tags come before it, each with its
-- batch. A Redis that is killed while it writes may, one restart later, bring back the first commands
-- of a script and not the others (decision 0019): tags of a batch that was not counted are then no
-- obstacle to it, since they are its own; and into the set go only ids of batches that were counted
-- before, whatever becomes of the script (decision 0032). So a commit costs the same after a million
-- batches as after one. Version 0.1 kept all ids in the field: its ids move on with the next batch. It
-- takes tags of a batch without the "+" for no obstacle, and these for duplicates: after a step back
-- to it nothing is counted twice.
--
-- KEYS: totals, seen, batches. ARGV: batch id, tags end to end, cells, the most tags to hold, crowd,
-- at, then name and amount of every term of the law. `unpack` fails past some thousands of
-- arguments, so tags, ids and cells go in chunks. Lua's numbers are doubles: a cell is exact only
-- below 2**53, so a sum past it is refused before any write. A full Redis refuses the first write.

local id, own = ARGV[1], ARGV[1] .. '+'
local old = redis.call('HMGET', KEYS[1], 'cells', 'batches', 'law', 'crowd', 'at')
local newest, at = old[2] or '', 0
repeat
  at = string.find(newest, id, at + 1, true)
  if at and (at - 1) % #id == 0 then return {'already_applied'} end
until not at
if redis.call('SISMEMBER', KEYS[3], id) == 1 then return {'already_applied'} end

local law = old[3] and cjson.decode(old[3]) or {}
local tags, pairs_of, seen = ARGV[2], {}, {}
if #tags > 0 and (law.counted or 0) > 0 and redis.call('EXISTS', KEYS[2]) == 0 then
  return {'forgotten'}
end
for first = 1, #tags, 16 * 2000 do
  local chunk, entry = {}, {}
  for from = first, math.min(first + 16 * 2000, #tags + 1) - 16, 16 do
    local tag = string.sub(tags, from, from + 15)
    chunk[#chunk + 1] = tag
    entry[#entry + 1] = tag
    entry[#entry + 1] = own
  end
  for i, batch in ipairs(redis.call('HMGET', KEYS[2], unpack(chunk))) do
    if batch and batch ~= own and batch ~= id then seen[#seen + 1] = chunk[i] end
  end
  pairs_of[#pairs_of + 1] = entry
end
if #seen > 0 then return {'seen', unpack(seen, 1, math.min(#seen, 4000))} end
if #tags > 0 and (law.counted or 0) + #tags / 16 > tonumber(ARGV[4]) then return {'full'} end

local cells, more = old[1] or '', ARGV[3]
if #cells > 0 and #more > 0 then
  if #cells ~= #more then return redis.error_reply('totals of another shape') end
  local parts, most = {}, 128
  for first = 1, #more, 8 * most do
    local n = math.min(most, (#more - first + 1) / 8)
    local format = '<' .. string.rep('i8', n)
    local a, b = {struct.unpack(format, cells, first)}, {struct.unpack(format, more, first)}
    for i = 1, n do
      a[i] = a[i] + b[i]
      if a[i] >= 9007199254740992 then return redis.error_reply('a cell passes 2^53') end
    end
    parts[#parts + 1] = struct.pack(format, unpack(a, 1, n))
  end
  cells = table.concat(parts)
elseif #more > 0 then
  cells = more
end
for i = 7, #ARGV, 2 do law[ARGV[i]] = (law[ARGV[i]] or 0) + tonumber(ARGV[i + 1]) end
local crowd, at = tonumber(old[4] or ARGV[5]), old[5] or '0'
if #tags > 0 then crowd, at = math.min(crowd, tonumber(ARGV[5])), ARGV[6] end

if #newest >= #id * 64 then
  local last = #newest - #id * 32
  for first = 1, last, #id * 4000 do
    local counted = {}
    for from = first, math.min(first + #id * 4000 - 1, last), #id do
      counted[#counted + 1] = string.sub(newest, from, from + #id - 1)
    end
    redis.call('SADD', KEYS[3], unpack(counted))
  end
  newest = string.sub(newest, last + 1)
end
for _, entry in ipairs(pairs_of) do redis.call('HSET', KEYS[2], unpack(entry)) end
if #tags > 0 then redis.call('PERSIST', KEYS[2]) end
redis.call('HSET', KEYS[1], 'cells', cells, 'batches', newest .. id, 'law', cjson.encode(law),
           'crowd', string.format('%d', crowd), 'at', at)
return {'applied'}
