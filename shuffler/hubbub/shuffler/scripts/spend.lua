-- Puts sealed reports into the pool, each with a token that goes with no other; answers how many were
-- new, and the places of those whose token has gone with another report.
-- KEYS: pool, law, spent. ARGV: for each report its token's nonce, its mark, and it itself.
-- Reports before tokens: of a torn script a report may be pooled whose token is not spent, and never
-- the other way round, which would acknowledge a report that is nowhere.

local refused, sealed, marks, seen = {}, {}, {}, {}
for place = 1, #ARGV, 3 do
  local nonce, mark = ARGV[place], ARGV[place + 1]
  local before = seen[nonce] or redis.call('HGET', KEYS[3], nonce)
  if not before then
    seen[nonce] = mark
    sealed[#sealed + 1] = ARGV[place + 2]
    marks[#marks + 1] = nonce
    marks[#marks + 1] = mark
  elseif before ~= mark then
    refused[#refused + 1] = (place - 1) / 3
  end
end
local added = 0
if #sealed > 0 then
  added = redis.call('SADD', KEYS[1], unpack(sealed))
  redis.call('HSET', KEYS[3], unpack(marks))
  redis.call('HINCRBY', KEYS[2], 'acknowledged', added)
end
return {added, refused}
