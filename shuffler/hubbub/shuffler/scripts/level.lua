-- How many reports are pooled, and how often some were taken.
-- KEYS: pool, law.

return {redis.call('SCARD', KEYS[1]), redis.call('HGET', KEYS[2], 'takes') or '0'}
