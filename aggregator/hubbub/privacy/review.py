"""Ten claims about a catalog that a reviewer can check in an afternoon, and how to check each.

Every claim has a command that shows it, the proofs and tests that fail if it does not hold, what
it relies on, and what it assumes. The figures are those of the privacy card.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.privacy.card import Card, card
from hubbub.sealing.kems import X_WING

_ACCOUNTS: Final = "test_somebody_with_a_few_accounts_sends_as_many_reports_as_they_have_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim; `command` is typed in a terminal, `shown` names proofs and tests."""

    says: str
    command: str
    shown: tuple[str, ...]
    rests_on: str
    assumed: str


def claims(catalog: Catalog, path: str, demo: str = "") -> tuple[Claim, ...]:
    """The ten claims of a catalog, whose file commands name by `path`.

    `demo` is the folder that `hubbub demo --keep` left, if commands are about that.
    """
    privacy_card = card(catalog)
    return (
        *_of_answers(privacy_card, path),
        *_of_the_device(f"hubbub ledger --state-dir {demo}/device" if demo else "hubbub ledger"),
        *_of_the_services(
            privacy_card,
            catalog,
            path,
            status=f"hubbub status --home {demo}" if demo else "hubbub status",
        ),
    )


def _of_answers(privacy_card: Card, path: str) -> list[Claim]:
    most = max(privacy_card.metrics, key=lambda metric: metric.per_report)
    year = privacy_card.together["year"]
    cap = privacy_card.caps["year"]
    return [
        Claim(
            says=f"One answer reveals at most {most.per_report:.4g} nats about a person "
            f"({most.name}; the others reveal no more), to any observer.",
            command=f"hubbub privacy card {path}",
            shown=("worst_ratio_is_within_the_claim", "test_contract"),
            rests_on="The mechanisms' arithmetic: exact fractions, every outcome enumerated.",
            assumed="The device runs this code.",
        ),
        Claim(
            says="The installed mechanisms draw as claimed: their proofs run, the coin source is "
            "tested digit by digit, and attacks find no more than the claimed epsilon. The audit "
            "lists "
            'what it could not enumerate as "not tried".',
            command=f"hubbub audit {path}",
            shown=("test_a_doubled_epsilon_is_caught", "test_a_float_sampler_with_a_gap_is_caught"),
            rests_on="The same code at every size; attacks at a false alarm of one in a million.",
            assumed="The operating system's random bytes are random.",
        ),
        Claim(
            says=f"All answers of a year reveal at most {year:.4g} nats, and the device itself "
            "stops at its limits" + (f", over all metrics at {cap:g} nats a year." if cap else "."),
            command=f"hubbub privacy card {path}",
            shown=(
                "test_the_lifetime_budget_ends_reporting",
                "test_what_was_spent_outlives_whatever_befalls_the_state",
                "test_renaming_a_metric_gives_no_more_than_the_cap",
            ),
            rests_on="The ledger on the device, written before anything leaves, and its witness.",
            assumed="Nobody deletes both by hand, which makes a new device.",
        ),
    ]


def _of_the_device(ledger: str) -> list[Claim]:
    return [
        Claim(
            says="A person can see everything that left their device, and what each answer could "
            "have meant.",
            command=ledger,
            shown=(
                "test_a_person_sees_what_left_and_what_it_could_have_meant",
                "likelihood_is_the_chance_up_to_a_factor",
            ),
            rests_on="The state folder, and Bayes' rule over the mechanism's own chances.",
            assumed="The app reports nothing beside hubbub.",
        ),
        Claim(
            says="An opt-out stops reports at once, in every process, and is never forgotten.",
            command="python -m pytest tests/unit/test_consent.py",
            shown=(
                "test_off_stops_at_once_and_what_waited_is_never_sent",
                "test_a_no_outlives_whatever_befalls_the_state",
            ),
            rests_on="Consent is stored in two places; the stricter one applies.",
            assumed="The app shows the switch.",
        ),
    ]


def _of_the_services(
    privacy_card: Card, catalog: Catalog, path: str, *, status: str
) -> list[Claim]:
    metrics = list(catalog.metrics.values())
    lowest = min(privacy_card.metrics, key=lambda metric: metric.min_batch)
    return [
        Claim(
            says="The shuffler cannot read what it mixes: it has no key, no mechanism and no "
            "catalog.",
            command="lint-imports",
            shown=(
                "test_the_shuffler_process_never_imports_mechanisms_or_catalog",
                "test_a_report_opens_only_where_it_belongs",
            ),
            rests_on="HPKE (RFC 9180), and contracts on what its process may import.",
            assumed="Shuffler and aggregator do not collude; otherwise the first claim remains.",
        ),
        Claim(
            says=f"Reports leave the shuffler {lowest.min_batch:,} at a time or more, in an order "
            "that nobody knows; an observer of them learns no more than from one answer, and "
            "mostly far less.",
            command=f"hubbub privacy amplify --epsilon {lowest.per_report:.4g} "
            f"--reports {lowest.min_batch}",
            shown=(
                "test_no_batch_is_smaller_than_the_minimum_and_no_reserve_is_touched",
                "test_no_shuffle_of_real_reports_says_more_than_is_proven",
            ),
            rests_on="Shuffling amplifies: proven for the mechanism, or for all of them.",
            assumed="The shuffler is honest, and so are the others of the batch.",
        ),
        Claim(
            says="Nothing is lost and nothing counted twice, whatever fails: the counts of "
            "shuffler and aggregator add up.",
            command=status,
            shown=(
                "test_nothing_is_lost_and_nothing_counted_twice_whatever_fails",
                "test_everything_sent_once_more_changes_no_total",
            ),
            rests_on="One transaction per batch, and a tag per report that is counted once.",
            assumed="Redis keeps what it has acknowledged.",
        ),
        _of_fakes(catalog, path),
        Claim(
            says=_of_silence_and_seals(metrics),
            command="python -m pytest tests/unit/test_cover.py tests/unit/test_x_wing.py",
            shown=(
                "test_a_classifier_of_all_that_a_shuffler_sees_is_at_chance",
                "test_who_records_today_and_breaks_x25519_tomorrow_is_at_chance",
            ),
            rests_on="`default` and `kem` of a metric, parts of its definition that no bundle "
            "removes.",
            assumed="For metrics without them the shuffler sees that a device reported, and a "
            "quantum computer could open a recording of today: the first claim remains.",
        ),
    ]


def _of_fakes(catalog: Catalog, path: str) -> Claim:
    by_tokens = catalog.tokens is not None
    return Claim(
        says="A sender of fake reports moves an estimate by a known amount at most.",
        command=f"hubbub plan attack {path} --fake 0.01",
        shown=(
            "test_no_payload_at_all_is_worth_more",
            "test_the_measured_gain_is_the_formulas",
            *([_ACCOUNTS] if by_tokens else []),
        ),
        rests_on="Strict checks of every payload; the largest gain is computed.",
        assumed="A sender has few accounts: the shuffler requires a token of an account."
        if by_tokens
        else "A sender can send few fakes: the limit is per address, not per person.",
    )


def _of_silence_and_seals(metrics: Sequence[Metric]) -> str:
    """Claim 10: which metrics hide that a device has nothing to report, and resist recordings."""
    covered = [metric.name for metric in metrics if metric.default is not None]
    sealed = [metric.name for metric in metrics if metric.kem == X_WING]
    silence = (
        f"For {', '.join(covered)} the shuffler cannot see whether a device had something to "
        "report; for any other metric here it can"
        if covered
        else "The shuffler can see for every metric here whether a device reported"
    )
    recording = (
        f"a quantum computer cannot open recorded reports of {', '.join(sealed)}"
        if sealed
        else "a quantum computer could open recorded reports of every metric here"
    )
    return f"{silence}; {recording}."
