"""The questions of the demo's catalog, two of which are asked in both ways.

Each report alone has a local epsilon of 1; in a crowd, a whole epoch has a central epsilon of 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from hubbub.authoring import Catalog
from hubbub.authoring.catalog_with_promises import read_with_promises
from hubbub.simulation.devices import Person

_STRINGS: Final = "top_domains.txt.gz"
_CATALOG: Final = "metrics.toml"
# Crowd of the catalog, small enough for few people or a quiet day.
_CROWD: Final = "crowd = 25000"
_LARGEST_CROWD: Final = 25_000
_SMALLEST_CROWD: Final = 10
_OF_PEOPLE: Final = 5 / 6


@dataclass(frozen=True, slots=True)
class BothWays:
    """One question asked twice; `alone` and `crowd` are the metrics' names."""

    title: str
    alone: str
    crowd: str


BOTH_WAYS: Final = (
    BothWays("Education", "education", "education_crowd"),
    BothWays("Work and education", "education_by_work", "education_by_work_crowd"),
)


CROSSED: Final = "age_and_income"
"""The metric of parts."""


def demo_questions(home: Path, people: int) -> Catalog:
    """Writes the demo's catalog to a folder, with a crowd of five sixths of the people.

    The crowd stops growing at 30,000 people.
    """
    data = files("hubbub.cli") / "demo_data"
    text = "\n".join((data / name).read_text() for name in (_CATALOG, "both_ways.toml"))
    crowd = max(_SMALLEST_CROWD, min(_LARGEST_CROWD, int(people * _OF_PEOPLE)))
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / _STRINGS).write_bytes((data / _STRINGS).read_bytes())
    path = home / _CATALOG
    path.write_text(text.replace(_CROWD, f"crowd = {crowd}"))
    return read_with_promises(path)


def answers_of(everyone: Sequence[Person]) -> list[Person]:
    """The people, with answers added to the questions that combine others."""
    return [
        person
        | {
            "education_crowd": person["education"],
            "education_by_work": (both := f"{person['occupation']}, {person['education']}"),
            "education_by_work_crowd": both,
            CROSSED: {"age": person["age_group"], "over_50k": person["income_over_50k"]},
        }
        for person in everyone
    ]
