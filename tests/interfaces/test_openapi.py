"""Whatever the OpenAPI document allows, and much that it does not: no fault, answers as told."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hubbub.aggregator.access.tokens import add_token
from tests.interfaces.running_aggregator import house
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

OPTIONS = f"""
    --checks all --exclude-checks positive_data_acceptance --suppress-health-check all
    --max-examples 5 --generation-deterministic --no-color --request-timeout {HANG_SECONDS}
    --max-response-time {HANG_SECONDS}
"""


def test_answers_are_as_the_document_says(tmp_path: Path) -> None:
    """schemathesis, with all its checks, of an aggregator that asks for tokens.

    But for the one that valid data is never refused: which words name a range of epochs that holds
    reports, and which metric takes candidates, is more than a schema can say.
    """
    secret = add_token(tmp_path / "tokens.json", "me", "admin", 1, time.time())
    options = ("--http-tokens", str(tmp_path / "tokens.json"), "--http-rate", "0")
    with house(tmp_path / "house", *options) as running:
        run = [sys.executable, "-m", "schemathesis.cli", "run", f"{running.page}/openapi.json"]
        run += ["--header", f"Authorization: Bearer {secret}"]
        run += OPTIONS.split()
        done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
        passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        assert passed
        assert int(passed[1]) == int(passed[2]) > 500
