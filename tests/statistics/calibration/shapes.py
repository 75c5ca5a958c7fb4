"""Who holds what: shapes of truths, the same for every mechanism; and mechanisms by a few words."""

from collections.abc import Callable

from hubbub.mechanisms import AnyMechanism, build

Shape = Callable[[int, int], list[int]]
"""From how many values and people to how many hold each."""


def equal(categories: int, people: int) -> list[int]:
    """As many of each; the first takes what is left over."""
    each = people // categories
    return [people - each * (categories - 1)] + [each] * (categories - 1)


def zipf(categories: int, people: int) -> list[int]:
    """An r-th of the first for the r-th."""
    total = sum(1 / rank for rank in range(1, categories + 1))
    counts = [int(people / rank / total) for rank in range(1, categories + 1)]
    counts[0] += people - sum(counts)
    return counts


def two_levels(categories: int, people: int) -> list[int]:
    """A tenth of the values holds nine tenths."""
    many = max(categories // 10, 1)
    return equal(many, people - people // 10) + equal(categories - many, people // 10)


def sure(number: int) -> Shape:
    """So many that many hold, and nobody the rest."""
    return lambda categories, people: equal(number, people) + [0] * (categories - number)


def built(name: str, epsilon: float, categories: int) -> AnyMechanism:
    """A mechanism over listed values."""
    return build(name, epsilon=epsilon, **({} if name == "rr" else {"categories": categories}))
