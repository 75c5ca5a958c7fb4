"""The questions that a notebook asks of an aggregator."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter, UnknownMetric
from hubbub.notebook.answer import Answer
from hubbub.notebook.http_client import MISSHAPEN, Service, named_path, service_at
from hubbub.query_results.answer_table import QueryName

_PAGE: Final = 10_000
_ROUTES: Final[Mapping[QueryName, str]] = {"percentiles": "estimates"}
"""Questions that are answered beside another one."""
_FINDS: Final = "tree"
"""The mechanism whose strings nobody has to list."""
_ITEMS: Final[Mapping[type, str]] = {str: 'texts, as ["one", "more"]', Real: "numbers, as [50, 95]"}


def connect(
    url: str,
    *,
    token: str | None = None,
    authority: str | Path | None = None,
    timeout_seconds: float = 60,
) -> "Connection":
    """A connection; nothing is asked yet.

    Args:
        url: the address that `hubbub up` prints, or of your aggregator's --http-listen.
        token: of `hubbub keys token`, where the service asks for one.
        authority: the file ca.pem, where the certificate is of an authority of one's own; of those
            in it, the aggregator's is trusted.
        timeout_seconds: how long an answer may take.

    Raises:
        BadParameter: a timeout that is none.
        ServiceUnavailable: no http or https address, a token that would travel in the clear, or a
            file that has no authority.
    """
    return Connection(service_at(url, token, authority, timeout_seconds))


class Connection:
    """Asks questions. What cannot be answered is an error of its own, with the service's words.

    Each is a HubbubError of `hubbub.errors`, and says the remedy:

    - UnknownMetric: no such metric; the message lists those that are.
    - BadParameter: a range that is none, a value that the metric lacks, strings without candidates.
    - UnknownList: no list of candidates is saved under this name.
    - BatchTooSmall: too few reports in these epochs; TooFewEpochs: nothing to compare with yet.
    - AccessRefused: no token, or one that may not.
    - ServiceUnavailable: nothing answers; StoreUnavailable: the service's Redis does not.

    What its methods take:

    - last: "7" (epochs), "12h", "7d", "4w", counted back from now.
    - epochs: "newest" (which is meant without either), "closed", "all", a number, a day,
      "2026-11-01..2026-11-07".
    - candidates: for metrics over strings, which to look for.
    - lists: names of saved lists of such; "catalog" for the catalog's own, which is what is looked
      for without either.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    def __repr__(self) -> str:
        return f"<connection to {self.service.url}>"

    def metrics(self) -> Answer:
        """The metrics there are, and what is held of each."""
        items = self.service.pages("/v1/metrics", {}, None, "metrics", 1000)
        return self._answer("metrics", items)

    def status(self) -> Answer:
        """The conservation law: where every report is, a row per stream and epoch."""
        return self._answer("status", self.service.ask("/v1/status"))

    def estimates(
        self,
        metric: str,
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
        anytime: bool = False,
    ) -> Answer:
        """Estimates with their intervals, as listed in the catalog.

        With `anytime` intervals hold at every look while the epochs fill, all of them together.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence, "order": "listed"}
        if anytime:
            options["anytime"] = "true"
        return self._ask(metric, "estimates", options, candidates, lists)

    def percentiles(
        self,
        metric: str,
        percentiles: Sequence[float] | float = (),
        below: Sequence[float] | float = (),
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
    ) -> Answer:
        """Percentiles of a number that has parts, in (0, 100), and shares below some numbers.

        Without any, the metric's in the catalog, or the usual ones from 10 to 99. Of each its
        interval, whose ends are edges of parts; `reaches` says which of them are ends of the range.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence, "order": "listed"}
        options["percentile"] = _items("percentiles", percentiles, Real)
        options["below"] = _items("below", below, Real)
        return self._ask(metric, "percentiles", options)

    def discover(
        self,
        metric: str,
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
        likely: float = 0.0,
    ) -> Answer:
        """The strings that people hold, though nobody listed them; of `tree` or with `discover`.

        `document["others"]` is how many reports hold another string, and `document["beginnings"]`
        names those that are only what longer ones begin with. With `likely`, in (0, 1),
        `document["likely"]` has further strings, of which that share is held by nobody, at most.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence, "order": "rank"}
        if likely:
            options["likely"] = likely
        if "/" not in metric:
            with suppress(UnknownMetric):  # unless some of its devices feed a tree
                return self._ask(f"{metric}/{_FINDS}", "estimates", options)
        answer = self._ask(metric, "estimates", options)
        if (mechanism := answer.document["mechanism"]) != _FINDS:
            raise BadParameter(
                f'metric "{metric}" is answered by {mechanism}, which finds no strings: ask for '
                f'its estimates, or give a metric mechanism = "{_FINDS}"'
            )
        return answer

    def top(
        self,
        metric: str,
        number: int = 10,
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
    ) -> Answer:
        """The most frequent values; `ahead_confidence`: how sure that one is ahead of the next."""
        options = {"last": last, "epochs": epochs, "confidence": confidence, "number": number}
        return self._ask(metric, "top", options, candidates, lists)

    def compare(
        self,
        metric: str,
        before: str = "",
        after: str = "",
        *,
        last: str = "",
        to_last: str = "",
        order: str = "rank",
        confidence: float = 0.95,
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
        percentiles: Sequence[float] | float = (),
    ) -> Answer:
        """What differs between two ranges, both as `epochs`; the surest difference first.

        With order "listed" values come as the catalog lists them.

        Without them the newest epoch that takes no more reports is compared with the one before.
        `last` and `to_last` are in place of before and after, counted back from now.
        `document["percentiles"]` says how far these percentiles of a number with buckets moved.
        """
        options = {"epochs": before, "last": last, "confidence": confidence}
        options |= {"to_epochs": after, "to_last": to_last, "order": order}
        options["percentile"] = _items("percentiles", percentiles, Real)
        return self._ask(metric, "compare", options, candidates, lists)

    def trend(
        self,
        metric: str,
        values: Sequence[str] = (),
        *,
        number: int | None = None,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
        percentiles: Sequence[float] | float = (),
    ) -> Answer:
        """These values epoch by epoch, or the `number` (5) most frequent; or these percentiles.

        Without any, a number with buckets is followed by its mean and percentiles.
        """
        options = {
            "last": last,
            "epochs": epochs or ("" if last else "all"),
            "confidence": confidence,
            **({} if number is None else {"number": number}),
            "value": _items("values", values),
            "percentile": _items("percentiles", percentiles, Real),
        }
        return self._ask(metric, "trend", options, candidates, lists)

    def cross(
        self,
        metric: str,
        rows: str = "",
        columns: str = "",
        by: str = "",
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
    ) -> Answer:
        """Two parts of a metric, the first two unless named, as a table: shares within rows.

        `document["association"]` says how they go together: a test, and Cramer's V. With a third
        part, `by`, there is a table for each of its values, and an association in
        `document["slices"]`.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence}
        parts = {"rows": rows, "columns": columns, "by": by}
        return self._ask(metric, "cross", {**options, **parts})

    def breakdown(
        self,
        metric: str,
        by: str = "",
        *,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
    ) -> Answer:
        """A metric by one of its public fields, the first without `by`: a row per part and value.

        `document["parts"]` has every part, also those with too few reports for an answer.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence, "by": by}
        return self._ask(metric, "breakdown", options, candidates, lists)

    def figures(
        self,
        metric: str,
        by: str = "",
        *,
        cohorts: bool = False,
        last: str = "",
        epochs: str = "",
        confidence: float = 0.95,
    ) -> Answer:
        """Figures of a funnel, a rate, an activity or a retention, each with its interval.

        With `by`, a public field, for each of its values; with `cohorts`, of a retention, for each
        first week. Without epochs those of activity and retention are all.
        """
        options = {"last": last, "epochs": epochs, "confidence": confidence, "by": by}
        if cohorts:
            options["cohorts"] = "true"
        return self._ask(metric, "figures", options)

    def experiment(self, name: str, *, confidence: float = 0.95) -> Answer:
        """What the arms of an experiment change: a row per metric, arm and measure.

        Intervals hold at every look, all of them together. `document["verdict"]` says it in words,
        `document["ratio_fits"]` whether the arms' sizes are as they should be.
        """
        path = named_path("/v1/experiments", name)
        return self._answer("experiment", self.service.ask(path, {"confidence": confidence}))

    def model(self, name: str, *, confidence: float = 0.95) -> Answer:
        """What a model has learned: a row per column, the intercept last.

        `document["steps"]` says how its rounds went, `document["held_out"]` how good it is where
        devices judge it; `to_sklearn()` makes a model of scikit-learn.
        """
        path = named_path("/v1/models", name)
        return self._answer("model", self.service.ask(path, {"confidence": confidence}))

    def _ask(
        self,
        metric: str,
        question: QueryName,
        options: Mapping[str, Any],
        candidates: Sequence[str] = (),
        lists: Sequence[str] = (),
    ) -> Answer:
        if not (isinstance(metric, str) and metric):
            raise BadParameter("name a metric, as metrics() lists them")
        name, slash, tier = metric.partition("/")
        if slash and not tier:
            raise BadParameter(f'"{metric}" ends without a tier; write {name}, or {name}/EPSILON')
        path = f"{named_path('/v1/metrics', name)}/{_ROUTES.get(question, question)}"
        parameters = {**options, "tier": tier, "list": _items("lists", lists)}
        strings = _items("candidates", candidates)
        body = {"candidates": strings} if strings else None
        if question in {"estimates", "percentiles", "compare"}:
            return self._answer(
                question, self.service.pages(path, parameters, body, "values", _PAGE)
            )
        return self._answer(question, self.service.ask(path, parameters, body))

    def _answer(self, question: QueryName, document: Any) -> Answer:
        """The answer, if it has the shape of one to this question."""
        try:
            return Answer(question, document)
        except MISSHAPEN as error:
            raise self.service.alien(error) from error


def _items(what: str, items: Any, kind: type = str) -> list[Any]:
    """The items of a list, or a single number. Raises BadParameter for others, as for a text."""
    items = [items] if isinstance(items, Real) and kind is Real else items
    is_list = isinstance(items, Collection) and not isinstance(items, str)
    if not (is_list and all(isinstance(item, kind) for item in items)):
        raise BadParameter(f"{what}: write a list of {_ITEMS[kind]}")
    return list(items)
