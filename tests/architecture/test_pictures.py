"""The README's picture is of measured numbers, drawn by its script, and of the demo as it is."""

import json
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from docs.pictures.both_ways import ALONE, CROWD, NUMBERS, PICTURE, draw_picture
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.cli.commands.demo import people
from hubbub.cli.demo_questions import answers_of, demo_questions
from tests.support.crowds import crowd_in

NUMBERS_ON_FILE = json.loads(NUMBERS.read_text())


def test_the_picture_is_drawn_from_the_numbers_beside_it() -> None:
    assert PICTURE.read_text() == draw_picture(NUMBERS_ON_FILE), (
        "run: python -m docs.pictures.both_ways"
    )


@pytest.mark.thorough
def test_the_numbers_of_the_picture_are_of_the_current_demo(tmp_path: Path) -> None:
    """To renew them: make pictures."""
    metrics = demo_questions(tmp_path / "home", NUMBERS_ON_FILE["reports"]).metrics
    everyone = answers_of(people(NUMBERS_ON_FILE["reports"]))
    for way in (ALONE, CROWD):
        result, metric = NUMBERS_ON_FILE[way], metrics[way]
        assert result["epsilon"] == pytest.approx(metric.report_loss)
        truth = Counter(person[way] for person in everyone)
        counts = [truth[value] for value in metric.values or ()]
        assert [row[0] for row in result["values"]] == sorted(counts, reverse=True)
        assert result["detected"] == sum(row[4] for row in result["values"])
        mechanism: Any = metric.randomizer
        noise = value_noise(metric)
        variance = mechanism.variance(sorted(counts)[len(counts) // 2], NUMBERS_ON_FILE["reports"])
        if noise:
            variance += noise.each.variance / float(mechanism.channel.p - mechanism.channel.q) ** 2
        assert result["stderr"] == pytest.approx(sqrt(variance), rel=0.05)
        # 224 intervals of 95%: sigma of their share is 1.5%.
        holds = sum(low <= true <= high for true, _, low, high, _ in result["values"])
        assert holds >= 0.88 * len(counts)
    assert NUMBERS_ON_FILE[CROWD]["central_epsilon"] <= crowd_in(metrics[CROWD]).epsilon
    assert NUMBERS_ON_FILE[ALONE]["central_epsilon"] is None


def test_the_readme_shows_the_picture_with_its_figures() -> None:
    readme = (NUMBERS.parents[2] / "README.md").read_text()
    first_screen = readme[: readme.index("    make demo")]
    assert "docs/pictures/both_ways.svg" in first_screen
    for way in (ALONE, CROWD):
        assert f"{NUMBERS_ON_FILE[way]['detected']}" in first_screen
    assert (
        f"{NUMBERS_ON_FILE[ALONE]['stderr'] / NUMBERS_ON_FILE[CROWD]['stderr']:.0f} times"
        in first_screen
    )
