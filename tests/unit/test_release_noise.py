"""Noise of releases is an extra: who lacks it is told when the aggregator starts."""

import sys

import pytest

from hubbub.catalog import Metric, Release
from hubbub.errors import MissingDependency
from hubbub.mechanisms import Totals, build
from hubbub.privacy.central_releases import check_noise, release
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml

_CATALOG = catalog_toml(
    metric_toml("theme", mechanism="rr", epsilon=1.0, values=["light", "dark"], min_batch=10),
    shuffler="shuffler.example.org:443",
)

_BUDGET = """
[budget]
epsilon_per_year = 5.0
purposes = { press = 1.0 }
"""


def _metrics(more: str = "") -> list[Metric]:
    return list(catalog_of(_CATALOG + more).metrics.values())


def test_a_catalog_with_a_release_is_refused_without_opendp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = _metrics('release = { mechanism = "laplace", epsilon = 0.5 }\n' + _BUDGET)
    check_noise(released)
    monkeypatch.setattr("hubbub.privacy.central_releases.find_spec", lambda _name: None)
    check_noise(_metrics())
    with pytest.raises(MissingDependency, match=r'"theme" is released.*PATH\[releases\]'):
        check_noise(released)


def test_a_release_without_opendp_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hubbub.privacy.release_noise", raising=False)
    monkeypatch.setitem(sys.modules, "opendp", None)
    mechanism = build("unary.oue", epsilon=1.0, categories=2)
    totals = Totals(cells=[5, 7], reports=10)
    policy = Release("laplace", 0.5)
    with pytest.raises(MissingDependency, match=r"PATH\[releases\]"):
        release([(mechanism, totals)], ["a", "b"], "histogram", "", policy=policy, reports_each=1)
