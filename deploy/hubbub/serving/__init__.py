"""Floor 2. What every service needs to run, and none calls its own: TLS, a gRPC server, Redis.

It knows no metric and no mechanism, so the blind shuffler may stand on it.
"""

from hubbub.serving.process import (
    add_security,
    end_with_parent,
    redis_url,
    run_service,
    serve_until_signal,
    tls_folder,
)
from hubbub.serving.redis_client import awaited, connect_redis, store_errors
from hubbub.serving.server import Server, channel
from hubbub.serving.tls import TlsFolder
from hubbub.serving.window import Window

__all__ = [
    "Server",
    "TlsFolder",
    "Window",
    "add_security",
    "awaited",
    "channel",
    "connect_redis",
    "end_with_parent",
    "redis_url",
    "run_service",
    "serve_until_signal",
    "store_errors",
    "tls_folder",
]
