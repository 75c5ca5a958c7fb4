"""Questions to a running hubbub, as tests put them."""

from collections.abc import Sequence

from hubbub.cli.terminal.service_client import Endpoints, ask
from hubbub.wire.v1.services_pb2 import (
    Estimated,
    EstimateRequest,
    MetricsRequest,
    MetricsResponse,
    Range,
)


def estimate(
    where: Endpoints,
    metric: str,
    epochs: Sequence[int] = (),
    last: str = "",
    candidates: Sequence[str] = (),
) -> Estimated:
    span = Range(epochs=",".join(map(str, epochs)), last=last)
    request = EstimateRequest(metric=metric, range=span, candidates=candidates)
    found: Estimated = ask(where, "Estimate", request)
    return found


def metrics(where: Endpoints) -> MetricsResponse:
    found: MetricsResponse = ask(where, "Metrics", MetricsRequest())
    return found
