-- Whether an account may have tokens for these streams of one epoch: the same answer to the same
-- question, as often as it comes, and none to another once so many devices had theirs.
-- KEYS: allowance. ARGV: devices, seconds to keep it, then for each stream its name and the question.

local allowed, changed = {}, {}
for place = 3, #ARGV, 2 do
  local stream, question = ARGV[place], ARGV[place + 1]
  local before = redis.call('HGET', KEYS[1], stream) or ''
  local found = 0
  for first = 1, #before, 16 do
    if string.sub(before, first, first + 15) == question then found = 1 end
  end
  if found == 0 and #before < 16 * tonumber(ARGV[1]) then
    found = 1
    changed[#changed + 1] = stream
    changed[#changed + 1] = before .. question
  end
  allowed[#allowed + 1] = found
end
if #changed > 0 then
  redis.call('HSET', KEYS[1], unpack(changed))
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
return allowed
