"""A Redis Cluster under load: a master killed, slots moved, everything restarted, parts added."""

from pathlib import Path

import pytest

from tests.system.chaos.clustered import MIN, run_clustered

pytestmark = pytest.mark.thorough


def test_a_cluster_that_fails_over_grows_and_restarts_loses_nothing(tmp_path: Path) -> None:
    result = run_clustered(tmp_path / "house", seed=20_261_122, tell=lambda _line: None)
    assert result["wrong"] == [], result
    done = result["done"]
    assert isinstance(done, dict)
    assert done["master killed"] == 2, result
    assert done["failed over"] >= 1, result
    assert done["with keys"] > 0, result
    # A seventh of the reports is of hours, which "sent" leaves out.
    assert int(str(result["sent"])) > 0.75 * MIN, result
