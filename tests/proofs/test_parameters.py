"""What a mechanism refuses to be built from, and what a layout refuses to read."""

import pytest

from hubbub.errors import BadParameter, BadPayload, ShapeMismatch
from hubbub.mechanisms import (
    BitVector,
    CohortBits,
    Layout,
    OneHot,
    Samples,
    Subset,
    Totals,
    build,
)
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import cell_names, listed_parts, parts_of
from hubbub.mechanisms.probability import exp_at_most
from hubbub.mechanisms.projective_geometry import Incidence, primes
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.registry import described_parameters, names_of
from hubbub.mechanisms.string_bits import spell
from hubbub.mechanisms.tree import PrefixTree


def test_rr_is_for_two_values() -> None:
    with pytest.raises(BadParameter, match="categories 3 is not 2; use grr"):
        build("rr", epsilon=1.0, categories=3)


def test_rappor_needs_room_for_its_hashes() -> None:
    with pytest.raises(BadParameter, match="hashes 3 is above bits 2"):
        build("rappor", bits=2, hashes=3, cohorts=1, f=0.5, p=0.25, q=0.75)


@pytest.mark.parametrize("name", ["cms", "hcms", "local_hash"])
def test_a_sketch_needs_more_than_one_bucket_and_has_bounds(name: str) -> None:
    wrong = {(4, 1): r"width 1 is outside \[2, 65536\]", (1 << 16, 1 << 7): "width 128 or hashes"}
    for (hashes, width), says in wrong.items():
        with pytest.raises(BadParameter, match=says):
            build(name, epsilon=1.0, hashes=hashes, width=width)


def test_hcms_needs_a_power_of_two() -> None:
    with pytest.raises(BadParameter, match="size 12 is not a power of two"):
        build("hcms", epsilon=1.0, hashes=4, width=12)


@pytest.mark.parametrize("name", ["long.grr", "long.unary"])
def test_the_epsilon_of_one_report_must_be_below_the_permanent_one(name: str) -> None:
    for permanent in (1.0, 0.5):
        with pytest.raises(BadParameter, match=r"epsilon 1\.0 is not below permanent_epsilon"):
            build(name, epsilon=1.0, permanent_epsilon=permanent, categories=5)


def test_buckets_needs_at_least_two_sampled_buckets() -> None:
    for sampled in (1, 5):
        with pytest.raises(BadParameter, match=f"sampled {sampled} is outside"):
            build("buckets", epsilon=1.0, low=0, high=1, buckets=4, sampled=sampled)


def test_a_range_has_a_low_below_its_high() -> None:
    for low, high in ((1, 1), (2, 1), (0, float("inf")), (True, 2)):
        with pytest.raises(BadParameter, match="are not a range"):
            build("mean.one_bit", epsilon=1.0, low=low, high=high)


def test_a_range_has_ends_that_floats_can_square() -> None:
    for low, high in ((0, 1e101), (-1e308, 1e308), (0, 5e-324)):
        with pytest.raises(BadParameter, match=r"within 1e100, and 1e-100 apart"):
            build("mean.one_bit", epsilon=1.0, low=low, high=high)


def test_an_infinite_loss_is_shown_as_a_number() -> None:
    bold = build("rappor", bits=64, hashes=8, cohorts=1, f=1e-300, p=0.0, q=1.0)
    assert 16 * 64 * 0.69 < bold.permanent_loss() < 16 * 65 * 0.7  # type: ignore[attr-defined]


def test_a_geometry_has_a_line_at_least() -> None:
    for prime, dimensions in ((1, 2), (3, 1)):
        with pytest.raises(BadParameter, match=f"no geometry over {prime} with {dimensions}"):
            Incidence(prime, dimensions)


@pytest.mark.parametrize("epsilon", [0.001, 0.5, 1.7, 4.0, 11.0])
@pytest.mark.parametrize("categories", [2, 36, 300, 100_000])
def test_no_other_geometry_has_a_smaller_variance(epsilon: float, categories: int) -> None:
    """Exactly, by the formula of its docstring."""
    odds, variances = exp_at_most(epsilon), {}
    for prime in primes(4099):
        dimensions = 2
        while (prime**dimensions - 1) // (prime - 1) < categories:
            dimensions += 1
        space = Incidence(prime, dimensions)
        if space.points * prime * dimensions <= 1 << 29 and space.points <= 1 << 22:
            k, on, both = space.points, space.on_one, space.on_two
            keep = odds * on / (odds * on + k - on)
            q = keep * both / on + (1 - keep) * (on - both) / (k - on)
            variances[space] = q * (1 - q) / (keep - q) ** 2
    mechanism = build("projective", epsilon=epsilon, categories=categories)
    assert mechanism.transform == min(variances, key=variances.__getitem__)  # type: ignore[attr-defined]


def test_a_channel_without_information_is_refused() -> None:
    quarter = build("rr", epsilon=1.0).channel.q  # type: ignore[attr-defined]
    with pytest.raises(BadParameter, match="carry no information"):
        Pure(quarter, quarter)


@pytest.mark.parametrize(
    ("bits", "cells", "message"),
    [(9, 1 << 17, "raise bits to"), (128, 1 << 20, "lower bits, or lower hashes")],
)
def test_a_tree_has_room_for_its_cells_and_not_too_many(
    bits: int, cells: int, message: str
) -> None:
    with pytest.raises(BadParameter, match=message):
        build("tree", epsilon=1.0, bits=bits, cells=cells, hashes=8)


def test_a_tree_decodes_its_strings_and_their_ends() -> None:
    tree = build("tree", epsilon=1.0, bits=64, cells=64, hashes=2)
    assert isinstance(tree, PrefixTree)
    code = spell("dark", tree.size)
    spelling = tree.read(code)
    assert spelling is not None
    assert spelling.text == "dark"
    assert spelling.used is not None
    ends = tree.ends_at(code)
    assert tree.ends[ends] >= spelling.used > (tree.ends[ends - 1] if ends else 0)
    long = spell("a string that does not fit", tree.size)
    assert tree.ends_at(long) == len(tree.ends) - 1


def test_a_listed_beginning_uses_the_bits_of_its_number() -> None:
    begun = ("https://", "https://example.org/", "日")
    tree = PrefixTree(epsilon=1.0, bits=64, cells=64, beginnings=begun)
    short = ("https://example.org/a", "https://example.org/", "https://exam", "日本", "", "dark")
    for text in short:
        spelling = tree.read(bits := tree.spelled(text))
        assert spelling is not None
        assert (spelling.text, spelling.used is None) == (text, False)
        assert tree.read(bits >> tree.size - 12, 12) is not None
    long = tree.read(tree.spelled("https://example.org/" + "x" * 99))
    assert long is not None
    assert long.used is None
    assert long.text.startswith("https://example.org/xxxx")


def test_no_text_is_named_by_a_shorter_beginning_than_found() -> None:
    tree = PrefixTree(epsilon=1.0, bits=64, cells=64, beginnings=("ab", "abc"))
    width = tree.size - 2
    assert tree.read(1 << width | spell("c", width)) is None, "abc is the second"
    assert tree.read(3 << width | spell("c", width)) is None, "there is no third"


@pytest.mark.parametrize("begun", [("a", "a"), ("",), tuple(map(str, range(256)))])
def test_beginnings_are_texts_each_once_and_not_too_many(begun: tuple[str, ...]) -> None:
    with pytest.raises(BadParameter, match="beginnings must be at most 255 texts"):
        PrefixTree(epsilon=1.0, beginnings=begun)


def test_beginnings_leave_the_first_level_some_bits() -> None:
    with pytest.raises(BadParameter, match="4 beginnings take 3 bits, but a level has 3"):
        PrefixTree(epsilon=1.0, bits=8, cells=8, beginnings=("a", "b", "c", "d"))


def test_probes_of_large_tables_cover_each_value_but_not_each_cell() -> None:
    mechanism = PairedParts(epsilon=1.0, sizes=(60, 40, 7))
    assert len(mechanism.probes()) == 60
    probe_places = [mechanism.places_of(probe) for probe in mechanism.probes()]
    assert [{*places} for places in zip(*probe_places, strict=True)] == [
        {*range(size)} for size in (60, 40, 7)
    ]


def test_a_value_is_in_its_named_cell_and_not_in_the_turned_one() -> None:
    mechanism = PairedParts(epsilon=1.0, sizes=(2, 3, 4))
    cells = [(group, cell) for group, many in enumerate(mechanism.cells) for cell in range(many)]
    for place, (group, cell) in enumerate(cells):
        plain, turned = (mechanism.with_cell(place, turn) for turn in (0, 1))
        assert mechanism.cell(mechanism.places_of(plain), group) == cell
        assert mechanism.cell(mechanism.places_of(turned), group) != cell


@pytest.mark.parametrize(
    ("sizes", "message"),
    [((300, 300), "a table of 90,000 cells"), ((250,) * 8, "leave parts out")],
)
def test_tables_have_bounds(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        build("pairs", epsilon=1.0, sizes=sizes)


def test_a_report_has_two_parts_three_or_all() -> None:
    with pytest.raises(BadParameter, match="ways 4 must be 2, 3 or the number of parts, 5"):
        build("pairs", epsilon=1.0, sizes=(2,) * 5, ways=4)


@pytest.mark.parametrize(
    ("epsilon", "ways", "names_one"), [(8.0, 4, True), (0.5, 4, False), (8.0, 3, False)]
)
def test_a_report_of_parts_names_one_cell_if_made_by_grr(
    epsilon: float, ways: int, *, names_one: bool
) -> None:
    assert PairedParts(epsilon, (2, 2, 2, 2), ways).names_one_cell == names_one


def test_cells_are_named_by_both_parts() -> None:
    listed = listed_parts({"theme": ["light", "dark"], "new": ["true", "false"]})
    assert parts_of(listed) == {"theme": ("light", "dark"), "new": ("true", "false")}
    assert cell_names(listed) == (
        "theme=light, new=true",
        "theme=light, new=false",
        "theme=dark, new=true",
        "theme=dark, new=false",
    )


def test_parameters_say_what_they_are() -> None:
    parameters = described_parameters("tree")
    assert {"bits", "cells", "hashes"} <= set(parameters)


def test_a_value_of_no_part_is_refused() -> None:
    with pytest.raises(BadParameter, match="values of parts are PART=VALUE"):
        parts_of(["theme=dark", "light"])


def test_mechanisms_are_found_by_their_parameters() -> None:
    assert set(names_of("bloom", "bits", "hashes", "cohorts", "f", "p", "q")) == {"rappor"}
    assert "grr" in names_of("listed", "epsilon", "categories")
    assert not names_of("listed", "epsilon", "categories", "colour")


def test_dummies_hold_one_value_each() -> None:
    layout = BitVector(3)
    with pytest.raises(ShapeMismatch, match="no single value, but each dummy has one"):
        Totals(cells=[1, 1, 1], reports=3, dummies=1).check(layout)


def test_more_than_four_hashes_come_from_a_second_digest() -> None:
    few = build("rappor", bits=4096, hashes=4, cohorts=2, f=0.5, p=0.25, q=0.75)
    many = build("rappor", bits=4096, hashes=8, cohorts=2, f=0.5, p=0.25, q=0.75)
    for first, both in zip(few.positions("a"), many.positions("a"), strict=True):  # type: ignore[attr-defined]
        assert set(first) < set(both)
        assert len(both) == 8


def test_bit_i_is_bit_i_mod_8_of_byte_i_div_8() -> None:
    """The peers' mistake 9: an undocumented order silently permutes the estimates."""
    layout = BitVector(11)
    for bit in range(11):
        payload = layout.encode(1 << bit)
        assert payload == bytes([1 << bit % 8 if byte == bit // 8 else 0 for byte in range(2)])
        assert layout.cells(payload) == {bit: 1}


@pytest.mark.parametrize(
    ("layout", "payload"),
    [
        (OneHot(300), b"\x2c\x01"),
        (OneHot(5), b"\x05"),
        (BitVector(11), b"\xff\x08"),
        (Subset(11, 2), b"\x07\x00"),
        (Subset(11, 2), b"\x03\x08"),
        (Samples(5, 2), b"\x02\x01"),
        (Samples(5, 2), b"\x02\x03"),
        (Samples(5, 2), b"\x02\x0a"),
        (CohortBits(3, 11), b"\x00\x00\xff\x08"),
        (CohortBits(3, 11), b"\x03\x00\xff\x00"),
        (CohortBits(3, 11), b"\x00"),
    ],
    ids=repr,
)
def test_range_and_padding_are_checked(layout: Layout, payload: bytes) -> None:
    with pytest.raises(BadPayload):
        layout.cells(payload)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("rappor", {"cohorts": 4096, "bits": 1025, "hashes": 2, "f": 0.5, "p": 0.25, "q": 0.75}),
        ("cms", {"epsilon": 1.0, "hashes": 4096, "width": 1025}),
        ("hcms", {"epsilon": 1.0, "hashes": 4096, "width": 1024}),
        ("vector.codes", {"epsilon": 1.0, "dimensions": 2, "words": 65, "books": 65_000}),
    ],
)
def test_no_mechanism_makes_totals_of_more_than_four_million_cells(
    name: str, numbers: dict[str, float]
) -> None:
    with pytest.raises(BadParameter, match="together above 4,194,304"):
        build(name, **numbers)


def test_a_cohort_number_has_two_bytes() -> None:
    assert CohortBits(300, 3).cells(b"\x2b\x01\x05") == {299 * 4: 1, 299 * 4 + 1: 1, 299 * 4 + 3: 1}
    with pytest.raises(BadParameter, match="cohorts 65537 is outside"):
        CohortBits(65537, 3)
