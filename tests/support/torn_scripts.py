"""Scripts of Redis that die after some of their writes, which stay."""

_WRITES = ("SADD", "SREM", "HSET", "HDEL", "HINCRBY", "RENAME", "PERSIST", "EXPIRE", "DEL")
_TORN = """
local real, left, writes = redis, {left}, {writes}
local redis = setmetatable({{call = function(name, ...)
  if writes[name] then
    if left == 0 then error('torn') end
    left = left - 1
  end
  return real.call(name, ...)
end}}, {{__index = real}})
"""


def torn(script: str, writes: int) -> str:
    """A script that dies after so many writes: what it wrote stays."""
    lua_table = "{" + ", ".join(f"{name} = true" for name in _WRITES) + "}"
    return _TORN.format(left=writes, writes=lua_table) + script
