"""Floor 2. What every service needs to run, and none calls its own: TLS, a gRPC server, Redis.

It knows no metric and no mechanism, so the blind shuffler may stand on it.
"""

from hubbub.serving.clocks import BELIEVED_SECONDS, Clocks
from hubbub.serving.files import replace_file
from hubbub.serving.law import LAW, balances, whole
from hubbub.serving.limiter import Limiter, network
from hubbub.serving.memory import Memory
from hubbub.serving.metrics import Metrics
from hubbub.serving.process import (
    Common,
    add_common,
    check_range,
    common,
    end_with_parent,
    run_service,
    serve_until_signal,
)
from hubbub.serving.redis_client import connect_redis
from hubbub.serving.redis_server import RedisServer, script
from hubbub.serving.refusal import come_back, refuse
from hubbub.serving.server import Server, channel
from hubbub.serving.stages import Stages
from hubbub.serving.tls import TlsFolder
from hubbub.serving.tracing import continued, headers
from hubbub.serving.window import Window

__all__ = [
    "BELIEVED_SECONDS",
    "LAW",
    "Clocks",
    "Common",
    "Limiter",
    "Memory",
    "Metrics",
    "RedisServer",
    "Server",
    "Stages",
    "TlsFolder",
    "Window",
    "add_common",
    "balances",
    "channel",
    "check_range",
    "come_back",
    "common",
    "connect_redis",
    "continued",
    "end_with_parent",
    "headers",
    "network",
    "refuse",
    "replace_file",
    "run_service",
    "script",
    "serve_until_signal",
    "whole",
]
