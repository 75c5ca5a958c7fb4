"""Prometheus metrics of the issuer alone."""

from typing import Final

from hubbub.runtime.monitoring.declaration import MetricDeclaration

TOKEN_REQUESTS: Final = MetricDeclaration(
    "hubbub_token_requests_total",
    "counter",
    "Requests for tokens: issued, or what became of them",
    ("outcome",),
)
ISSUED_TOKENS: Final = MetricDeclaration(
    "hubbub_issued_tokens_total",
    "counter",
    "Tokens: issued, refused as the account has had its own, or not given to anybody",
    ("outcome",),
)
