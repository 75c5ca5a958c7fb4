-- Adds an entry to the record of releases, if its writer knows all that is there; answers the others.
-- KEYS: the list. ARGV: how many entries its reader knows, the entry.

local more = redis.call('LRANGE', KEYS[1], ARGV[1], -1)
if #more == 0 then redis.call('RPUSH', KEYS[1], ARGV[2]) end
return more
