"""Floor 2. What every service needs to run and none owns: TLS, a gRPC server, Redis.

It knows no metric and no mechanism, so the blind shuffler may depend on it.
"""

from hubbub.runtime.clocks import BELIEVED_SECONDS, Clocks
from hubbub.runtime.messages import hint_seconds, read_message
from hubbub.runtime.monitoring.declaration import (
    CLOCK_APART_SECONDS,
    REDIS_MEMORY_RATIO,
    RELOADS,
    THROTTLED_CALLS,
    MetricDeclaration,
)
from hubbub.runtime.monitoring.logs import facts, lost_lines
from hubbub.runtime.monitoring.metrics import Metrics
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.monitoring.tracing import continued, headers
from hubbub.runtime.process import (
    Loop,
    certificates_until,
    day_of,
    run_service,
    serve_until_signal,
)
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.server import (
    Command,
    Hashes,
    Memory,
    MemoryServer,
    RedisServer,
    lua,
    script,
)
from hubbub.runtime.reloading import Reloader, Take
from hubbub.runtime.rpc.limiter import Limiter, network
from hubbub.runtime.rpc.peers import caller_of
from hubbub.runtime.rpc.refusal import come_back, refuse
from hubbub.runtime.rpc.server import Server, channel
from hubbub.runtime.service_options import (
    SECURITY,
    Common,
    address_option,
    insecure_option,
    log_format_option,
    networks_option,
    proxies_option,
    read_limits,
    redis_url,
    tls_option,
)
from hubbub.runtime.system_clock import Clock, SystemClock
from hubbub.runtime.tls import TlsFolder
from hubbub.runtime.version import VERSION

__all__ = [
    "BELIEVED_SECONDS",
    "CLOCK_APART_SECONDS",
    "REDIS_MEMORY_RATIO",
    "RELOADS",
    "SECURITY",
    "THROTTLED_CALLS",
    "VERSION",
    "Clock",
    "Clocks",
    "Command",
    "Common",
    "Hashes",
    "Limiter",
    "Loop",
    "Memory",
    "MemoryServer",
    "MetricDeclaration",
    "Metrics",
    "RedisServer",
    "Reloader",
    "Server",
    "Stages",
    "SystemClock",
    "Take",
    "TlsFolder",
    "address_option",
    "caller_of",
    "certificates_until",
    "channel",
    "come_back",
    "connect_redis",
    "continued",
    "day_of",
    "facts",
    "headers",
    "hint_seconds",
    "insecure_option",
    "log_format_option",
    "lost_lines",
    "lua",
    "network",
    "networks_option",
    "proxies_option",
    "read_limits",
    "read_message",
    "redis_url",
    "refuse",
    "run_service",
    "script",
    "serve_until_signal",
    "tls_option",
]
