-- The commit of a batch: whole or not at all, on the keys of a window's shard.
--
-- What a batch changes in the totals is one HSET of absolute values: the chunks of cells that it
-- touches, the newest batch ids, the law. Tags come before it. A Redis that is killed while it
-- writes may, one restart later, bring back the first commands of a script and not the others
-- (decision 0019). So the first commit of a run of Redis writes all chunks, over whatever may come
-- back; and the journal, written before the tags, says whose they are: they are no obstacle to their
-- own batch. A batch's journal goes with a later commit that finds the batch counted. Into the set of
-- ids go only ids of batches that were counted before (decision 0032).
--
-- A tag is a 64-bit number in one set and 16 more bits in another, both of the bucket that its place
-- says (decision 0058): sets of a few hundred integers, which Redis packs. Buckets come in
-- generations: when one is full, a larger one begins, and all are looked through. Places are hashes
-- with the window's salt, so nobody can choose tags that meet in one bucket; they come in order, so
-- that a bucket's tags are neighbours. Version 0.1 kept tags in one hash (`seen`) and cells in one
-- field: both are read, and the cells move on with the next batch.
--
-- The law counts the dummies among a crowd's reports by themselves, as counted:dummies; each has a tag
-- as every report has.
--
-- KEYS: totals, seen, batches, tags. ARGV: batch id; the most tags to hold; crowd; at; salt; how many
-- tags to expect; tags, 16 bytes each; their numbers, as text; their other bits, 2 bytes each; their
-- places, 4 bytes each; cells in all; cells a chunk; how many chunks follow, each its index and its
-- cells; then name and amount of every term of the law.
-- `unpack` fails past some thousands of arguments. Lua's numbers are doubles: a cell is exact only
-- below 2**53, so a sum past it is refused before any write. A full Redis refuses the first write.

local id, tags, n = ARGV[1], ARGV[7], #ARGV[7] / 16
local old = redis.call('HMGET', KEYS[1], 'cells', 'batches', 'law', 'crowd', 'at', 'size', 'run')
local newest = old[2] or ''
local function counted_before(batch)
  local from = 0
  repeat
    from = string.find(newest, batch, from + 1, true)
    if from and (from - 1) % #batch == 0 then return true end
  until not from
  return redis.call('SISMEMBER', KEYS[3], batch) == 1
end
if counted_before(id) then return {'already_applied'} end
local law = old[3] and cjson.decode(old[3]) or {}
local counted = (law.counted or 0) + (law['counted:dummies'] or 0)

local generations, placed, own = {}, 0, nil
local held = redis.call('HMGET', KEYS[4], 'generations', 'salt', 'of:' .. id, 'forgotten')
for buckets, number in string.gmatch(held[1] or '', '(%d+):(%d+)') do
  generations[#generations + 1] = {tonumber(buckets), tonumber(number)}
  placed = placed + tonumber(number)
end
local former = counted > placed and redis.call('EXISTS', KEYS[2]) == 1
if n > 0 and (held[4] or counted > placed and not former) then return {'forgotten'} end
if n > 0 and held[2] and held[2] ~= ARGV[5] then return {'salt', held[2]} end
if held[3] then
  own = {}
  for first = 1, #held[3], 16 do own[string.sub(held[3], first, first + 15)] = true end
end

local numbers, checks, places = {}, {}, {}
for number in string.gmatch(ARGV[8], '%S+') do numbers[#numbers + 1] = number end
local function integers(text, kind, bytes, into)
  for first = 1, #text, bytes * 2000 do
    local count = math.min(2000, (#text - first + 1) / bytes)
    local found = {struct.unpack('<' .. string.rep(kind, count), text, first)}
    for i = 1, count do into[#into + 1] = found[i] end
  end
end
integers(ARGV[9], 'i2', 2, checks)
integers(ARGV[10], 'I4', 4, places)
local function tag(i) return string.sub(tags, 16 * i - 15, 16 * i) end
local function each_bucket(generation, buckets, visit)
  local first = 1
  while first <= n do
    local bucket, last = math.floor(places[first] * buckets / 4294967296), first
    local beyond = (bucket + 1) * 4294967296 / buckets
    while last < n and last - first < 3999 and places[last + 1] < beyond do last = last + 1 end
    visit(KEYS[4] .. ':' .. generation .. '.' .. bucket, first, last)
    first = last + 1
  end
end

local seen = {}
for g, generation in ipairs(generations) do
  each_bucket(g, generation[1], function(key, first, last)
    for j, hit in ipairs(redis.call('SMISMEMBER', key, unpack(numbers, first, last))) do
      local i = first + j - 1
      if hit == 1 and not (own and own[tag(i)])
          and redis.call('SISMEMBER', key .. '+', checks[i]) == 1 then
        seen[#seen + 1] = tag(i)
      end
    end
  end)
end
if former then
  for first = 1, n, 2000 do
    local chunk = {}
    for i = first, math.min(first + 1999, n) do chunk[#chunk + 1] = tag(i) end
    for j, batch in ipairs(redis.call('HMGET', KEYS[2], unpack(chunk))) do
      if batch and batch ~= id .. '+' and batch ~= id then seen[#seen + 1] = chunk[j] end
    end
  end
end
if #seen > 0 then return {'seen', unpack(seen, 1, math.min(#seen, 4000))} end
if n > 0 and counted + n > tonumber(ARGV[2]) then return {'full'} end

local size, chunk_bytes, chunks = tonumber(ARGV[11]), 8 * ARGV[12], tonumber(ARGV[13])
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local change = {}
local function put(field, value)
  change[#change + 1], change[#change + 2] = field, value
end
local function sum(a, b)
  local parts, most = {}, 128
  for first = 1, #a, 8 * most do
    local count = math.min(most, (#a - first + 1) / 8)
    local format = '<' .. string.rep('i8', count)
    local x, y = {struct.unpack(format, a, first)}, {struct.unpack(format, b, first)}
    for i = 1, count do
      x[i] = x[i] + y[i]
      if x[i] >= 9007199254740992 then return nil end
    end
    parts[#parts + 1] = struct.pack(format, unpack(x, 1, count))
  end
  return table.concat(parts)
end
if n > 0 then
  local whole = not old[6] and old[1]
  if old[6] and tonumber(old[6]) ~= size or whole and #whole ~= 8 * size then
    return redis.error_reply('totals of another shape')
  end
  local more, fields, cells = {}, {}, {}
  for k = 14, 12 + 2 * chunks, 2 do
    more['cells:' .. ARGV[k]] = ARGV[k + 1]
    fields[#fields + 1] = 'cells:' .. ARGV[k]
  end
  if old[7] ~= run then
    fields = {}
    for first = 0, 8 * size - 1, chunk_bytes do
      local field = string.format('cells:%d', first / chunk_bytes)
      fields[#fields + 1] = field
      cells[field] = whole and string.sub(whole, first + 1, first + chunk_bytes)
        or string.rep('\0', math.min(chunk_bytes, 8 * size - first))
    end
  end
  if old[6] and #fields > 0 then
    for k, held in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
      cells[fields[k]] = held or cells[fields[k]]
    end
  end
  for _, field in ipairs(fields) do
    local held, added = cells[field], more[field]
    local both = held and added and sum(held, added) or not (held and added) and (held or added)
    if not both then return redis.error_reply('a cell passes 2^53') end
    put(field, both)
  end
  put('size', size)
  put('run', run)
end
for i = 14 + 2 * chunks, #ARGV, 2 do law[ARGV[i]] = (law[ARGV[i]] or 0) + tonumber(ARGV[i + 1]) end
local crowd, at = tonumber(old[4] or ARGV[3]), old[5] or '0'
if n > 0 then crowd, at = math.min(crowd, tonumber(ARGV[3])), ARGV[4] end

if #newest >= #id * 64 then
  local last = #newest - #id * 32
  for first = 1, last, #id * 4000 do
    local moved = {}
    for from = first, math.min(first + #id * 4000 - 1, last), #id do
      moved[#moved + 1] = string.sub(newest, from, from + #id - 1)
    end
    redis.call('SADD', KEYS[3], unpack(moved))
  end
  newest = string.sub(newest, last + 1)
end
if n > 0 then
  if former then redis.call('PERSIST', KEYS[2]) end
  local over = {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do
    local batch = string.match(field, '^of:(.*)$')
    if batch and batch ~= id and counted_before(batch) then over[#over + 1] = field end
  end
  if #over > 0 then redis.call('HDEL', KEYS[4], unpack(over)) end
  local last = generations[#generations]
  if not last or last[2] + n > 440 * last[1] then
    last = {math.ceil(math.max(tonumber(ARGV[6]) - placed, 3 * placed, n) / 400), 0}
    generations[#generations + 1] = last
  end
  last[2] = last[2] + n
  local text = {}
  for g, generation in ipairs(generations) do text[g] = table.concat(generation, ':') end
  redis.call('HSET', KEYS[4], 'generations', table.concat(text, ' '), 'salt', ARGV[5],
    'of:' .. id, tags)
  each_bucket(#generations, last[1], function(key, first, last_one)
    redis.call('SADD', key, unpack(numbers, first, last_one))
    redis.call('SADD', key .. '+', unpack(checks, first, last_one))
  end)
end
put('batches', newest .. id)
put('law', cjson.encode(law))
put('crowd', string.format('%d', crowd))
put('at', at)
redis.call('HSET', KEYS[1], unpack(change))
if n > 0 and old[1] then redis.call('HDEL', KEYS[1], 'cells') end
return {'applied'}
