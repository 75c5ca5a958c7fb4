-- Deletes one shard's totals. What it counted stays a term of the law, as counted:deleted.
-- The term also marks the shard: commit.lua counts no more there, since the rest of a crowd would be
-- fewer reports than its metric promises. So it is written where nothing was counted, too.
-- KEYS: totals. ARGV: of how many reports a file has totals that Redis lost; -1 for a shard beside the
-- first. Answers how many reports they were of.
-- The law first: where Redis dies in between, no answer has the half that is left, and a second
-- call deletes it (docs/decisions/0222).
local text = redis.call('HGET', KEYS[1], 'law')
if not text then
  local reports_in_file = math.max(tonumber(ARGV[1]), 0)
  if reports_in_file > 0 or ARGV[1] == '-1' then
    redis.call('HSET', KEYS[1], 'law', cjson.encode({counted = 0, ['counted:deleted'] = reports_in_file}))
  end
  return reports_in_file
end
local law = cjson.decode(text)
local counted = (law['counted'] or 0) + (law['counted:dummies'] or 0)
law['counted'] = 0
law['counted:dummies'] = nil
law['counted:deleted'] = (law['counted:deleted'] or 0) + counted
redis.call('HSET', KEYS[1], 'law', cjson.encode(law))
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'law' then redis.call('HDEL', KEYS[1], field) end
end
return counted
