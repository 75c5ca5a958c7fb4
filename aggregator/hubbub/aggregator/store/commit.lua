-- The commit of a batch: whole or not at all, on the keys of a window's shard.
--
-- What a batch changes in the totals is one HSET of absolute values: the chunks of cells that it
-- touches, the newest batch ids, the law. Tags come before it. A Redis that is killed while it
-- writes may, one restart later, bring back the first commands of a script and not the others
-- (decision 0222). So the first commit of a run of Redis writes all chunks, over whatever may come
-- back; and the journal, written before the tags, says whose they are: they are no obstacle to their
-- own batch. A batch's journal goes with a later commit that finds the batch counted. Into the set of
-- ids go only ids of batches that were counted before (decision 0222).
--
-- Of a tag 9 bytes are kept, in the bucket that its place says: a field of a hash, with the ends of a
-- few dozen tags one behind the other (decision 0222). However many tags and buckets a batch has, one
-- HMGET and one HSET of many fields read and write them. Buckets come in generations: when one is full,
-- a larger one begins, and all are looked through. Places are hashes with the window's salt, so nobody
-- can choose tags that meet in one bucket; they come in order, so that a bucket's tags are neighbours.
--
-- Earlier a generation was sets of integers, and version 0.1 kept tags in one hash
-- (`seen`) and cells in one field: all are read, and the cells move on with the next batch.
--
-- The law counts the dummies among a crowd's reports by themselves, as counted:dummies; each has a tag
-- as every report has.
--
-- KEYS: totals, seen, batches, tags. ARGV: batch id; the most tags to hold; crowd; at; salt; how many
-- tags to expect; tags, 16 bytes each; their ends, 9 bytes each; their places, 4 bytes each; cells in
-- all; cells a chunk; how many chunks follow, each its index and its cells; then name and amount of
-- every term of the law.
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
for buckets, kind, number in string.gmatch(held[1] or '', '(%d+)([:=])(%d+)') do
  generations[#generations + 1] = {tonumber(buckets), tonumber(number), kind}
  placed = placed + tonumber(number)
end
local former = counted > placed and redis.call('EXISTS', KEYS[2]) == 1
if n > 0 and (held[4] or law['counted:deleted'] or counted > placed and not former) then
  return {'forgotten'}
end
if n > 0 and held[2] and held[2] ~= ARGV[5] then return {'salt', held[2]} end
if held[3] then
  own = {}
  for first = 1, #held[3], 16 do own[string.sub(held[3], first, first + 15)] = true end
end

local ends, places = ARGV[8], {}
for first = 1, n, 2000 do
  local count = math.min(2000, n - first + 1)
  local found = {struct.unpack('<' .. string.rep('I4', count), ARGV[9], 4 * first - 3)}
  for i = 1, count do places[first + i - 1] = found[i] end
end
local function tag(i) return string.sub(tags, 16 * i - 15, 16 * i) end
local function each_bucket(buckets, most, visit)
  local first = 1
  while first <= n do
    local bucket, last = math.floor(places[first] * buckets / 4294967296), first
    local beyond = (bucket + 1) * 4294967296 / buckets
    while last < n and last - first + 1 < most and places[last + 1] < beyond do last = last + 1 end
    visit(bucket, first, last)
    first = last + 1
  end
end
-- The buckets of a batch's tags in one generation, by hash: the field of each, and from which tag to
-- which it is.
local function hashes_of(generation, buckets)
  local hashes, hash, beyond = {}, nil, 0
  each_bucket(buckets, n, function(bucket, first, last)
    if bucket >= beyond or #hash.fields == 3500 then
      local number = math.floor(bucket / 16384)
      hash = {key = KEYS[4] .. ':' .. generation .. '.' .. number, fields = {}, firsts = {}, lasts = {}}
      hashes[#hashes + 1] = hash
      beyond = 16384 * (number + 1)
    end
    local place = #hash.fields + 1
    hash.fields[place] = struct.pack('<I2', bucket % 16384)
    hash.firsts[place], hash.lasts[place] = first, last
  end)
  return hashes
end
-- Not across the end of one and the beginning of the next.
local function holds(bucket, one)
  local from = 0
  repeat
    from = string.find(bucket, one, from + 1, true)
  until not from or (from - 1) % 9 == 0
  return from
end

local seen, looked = {}, {}
local function look(g, buckets)
  looked = hashes_of(g, buckets)
  for _, hash in ipairs(looked) do
    hash.held = redis.call('HMGET', hash.key, unpack(hash.fields))
    for k, bucket in ipairs(hash.held) do
      if bucket then
        for i = hash.firsts[k], hash.lasts[k] do
          if holds(bucket, string.sub(ends, 9 * i - 8, 9 * i)) and not (own and own[tag(i)]) then
            seen[#seen + 1] = tag(i)
          end
        end
      end
    end
  end
end
-- Eight bytes as Redis writes a number of a set: 2^32 is 4294 millions and 967296.
local function integer(eight)
  local low, high = struct.unpack('<I4i4', eight)
  local sign = high < 0 and '-' or ''
  if high < 0 then low, high = 4294967296 - low, -high - 1 end
  local most = high * 967296 + low
  local millions = high * 4294 + math.floor(most / 1000000)
  local text = string.format('%s%.0f%06.0f', sign, millions, most % 1000000)
  return (string.gsub(text, '^(-?)0+(%d)', '%1%2'))
end
local function look_in_sets(g, buckets)
  each_bucket(buckets, 4000, function(bucket, first, last)
    local key, numbers = KEYS[4] .. ':' .. g .. '.' .. bucket, {}
    for i = first, last do numbers[#numbers + 1] = integer(string.sub(tag(i), 9)) end
    for j, hit in ipairs(redis.call('SMISMEMBER', key, unpack(numbers))) do
      local one = tag(first + j - 1)
      if hit == 1 and not (own and own[one])
          and redis.call('SISMEMBER', key .. '+', (struct.unpack('<i2', one, 7))) == 1 then
        seen[#seen + 1] = one
      end
    end
  end)
end
for g, generation in ipairs(generations) do
  (generation[3] == '=' and look or look_in_sets)(g, generation[1])
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

local size, chunk_bytes, chunks = tonumber(ARGV[10]), 8 * ARGV[11], tonumber(ARGV[12])
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
  for k = 13, 11 + 2 * chunks, 2 do
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
  put('last', id)
end
for i = 13 + 2 * chunks, #ARGV, 2 do law[ARGV[i]] = (law[ARGV[i]] or 0) + tonumber(ARGV[i + 1]) end
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
  if not last or last[3] == ':' or last[2] + n > 60 * last[1] then
    last = {math.ceil(math.max(tonumber(ARGV[6]) - placed, 3 * placed, n) / 30), 0, '='}
    generations[#generations + 1] = last
    looked = hashes_of(#generations, last[1])
  end
  last[2] = last[2] + n
  local text = {}
  for g, generation in ipairs(generations) do
    text[g] = generation[1] .. generation[3] .. generation[2]
  end
  redis.call('HSET', KEYS[4], 'generations', table.concat(text, ' '), 'salt', ARGV[5],
    'of:' .. id, tags)
  for _, hash in ipairs(looked) do
    local change = {}
    for k, field in ipairs(hash.fields) do
      local more = string.sub(ends, 9 * hash.firsts[k] - 8, 9 * hash.lasts[k])
      change[2 * k - 1], change[2 * k] = field, (hash.held and hash.held[k] or '') .. more
    end
    redis.call('HSET', hash.key, unpack(change))
  end
end
put('batches', newest .. id)
put('law', cjson.encode(law))
put('crowd', string.format('%d', crowd))
put('at', at)
redis.call('HSET', KEYS[1], unpack(change))
if n > 0 and old[1] then redis.call('HDEL', KEYS[1], 'cells') end
return {'applied'}
