"""The demo's people: real census answers, and a home page each, drawn by rank."""

import csv
import gzip
import secrets
from importlib.resources import files
from itertools import accumulate, islice
from typing import Final

from hubbub.simulation.devices import Person

PEOPLE: Final = 30_162
"""How many the census has."""
AGE_GROUPS = ((25, "17-24"), (35, "25-34"), (45, "35-44"), (55, "45-54"), (65, "55-64"))


def candidates() -> list[str]:
    """The 10,000 domains, most queried first."""
    return _text("top_domains.txt.gz").split()


def people(number: int) -> list[Person]:
    """So many people: the census's 30,162, again from the first when they do not suffice.

    Home pages follow Zipf's law with exponent 1.0 over the domains' ranks.
    """
    census = list(csv.DictReader(_text("census_people.csv.gz").splitlines()))
    domains = candidates()
    weights = list(accumulate(1 / rank for rank in range(1, len(domains) + 1)))
    homepages = secrets.SystemRandom().choices(domains, cum_weights=weights, k=number)
    again = (row for _ in range(number // len(census) + 1) for row in census)
    return [
        {
            "income_over_50k": "yes" if row["income"] == ">50K" else "no",
            "education": row["education"],
            "occupation": row["occupation"],
            "age_group": _age_group(int(row["age"])),
            "homepage": homepage,
        }
        for row, homepage in zip(islice(again, number), homepages, strict=True)
    ]


def _age_group(age: int) -> str:
    return next((name for below, name in AGE_GROUPS if age < below), "65+")


def _text(name: str) -> str:
    return gzip.decompress((files("hubbub.cli") / "demo_data" / name).read_bytes()).decode()
