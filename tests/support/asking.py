"""Questions to a running hubbub, as tests put them: answers have attributes in place of keys."""

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from hubbub.installation.running_endpoints import Endpoints


def attributes(document: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(document), object_hook=lambda fields: SimpleNamespace(**fields))


def estimate(
    where: Endpoints,
    metric: str,
    epochs: Sequence[int] = (),
    last: str = "",
    candidates: Sequence[str] = (),
) -> Any:
    span = ",".join(map(str, epochs))
    answer = where.connection.estimates(metric, epochs=span, last=last, candidates=candidates)
    return attributes(answer.document)


def metrics(where: Endpoints) -> Any:
    return attributes(where.connection.metrics().document)
