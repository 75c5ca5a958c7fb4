"""The token store: requests tokens, and assigns one to each report before it leaves.

The tokens of an epoch are requested at a moment of the previous epoch that follows from the
device's secret, or, if there are none, when a report waits. A request is for all streams with that
length of epoch, and for as many tokens as one device may need: it reveals nothing of reports.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hubbub.bundles import Bundle
from hubbub.catalog import epoch_at, epoch_start, late_from
from hubbub.client.clock import Clock
from hubbub.client.delivery.waits import soon
from hubbub.client.epochs_to_cover import waiting_epochs
from hubbub.client.mistakes_and_counters import Diagnostics
from hubbub.client.reentry_and_forks import NoReentryLock
from hubbub.client.state.contract import OutboxReport, State
from hubbub.client.state.secret import DeviceMemo
from hubbub.client.state.token_wallet import Inputs, Kind, Wallet
from hubbub.client.transport.contract import NotSent
from hubbub.errors import BadParameter
from hubbub.errors.message_words import install_with, is_installed
from hubbub.tokens.token import Minted, new_nonce, token_info

if TYPE_CHECKING:
    from hubbub.client.settings import Account
    from hubbub.client.transport.issuer_connection import AskIssuer

_NOT_GIVEN: Final = (
    'the issuer gives no tokens for "%s": reports of this epoch wait, and expire without tokens'
)
_TOKENS_HAD: Final = 'this account has had its tokens of "%s": reports of this epoch expire'
_KEY_LETTERS: Final = 16  # hex digits of the issuer's public key, enough to tell two keys apart
_STEPS: Final = 1 << 16  # moments of an epoch; one is drawn
_SHORTEST_SECONDS: Final = 0.5
_APART_SECONDS: Final = 600.0  # longest delay between attempts that no report waits for


class TokenStore:
    """The tokens of one process, safe between threads; `ask` is None without an account."""

    def __init__(
        self,
        bundle: Bundle,
        state: State,
        ask: "AskIssuer | None",
        *,
        clock: Clock,
        diagnostics: Diagnostics,
    ) -> None:
        self._bundle, self._state, self._ask = bundle, state, ask
        self._clock, self._diagnostics = clock, diagnostics
        self._key = bundle.tokens.public.hex()[:_KEY_LETTERS] if bundle.tokens else ""
        self.lock = NoReentryLock()
        self._failures = 0
        self._not_before = 0.0
        self._answered: set[tuple[str, int]] = set()
        self._lacking: set[Kind] = set()

    @property
    def waiting(self) -> list[tuple[str, int, int]]:
        """Returns reports that wait for a token: stream, first and last epoch."""
        return [(stream, epoch, epoch) for stream, epoch, _ in sorted(self._lacking)]

    def fetch(self, timeout_seconds: float) -> None:
        """Requests the tokens that are due; repeats failed requests later. Raises StateUnusable."""
        if self._ask is None or timeout_seconds <= 0 or self.lock.is_ours():
            return
        with self.lock.hold(0) as is_entered:
            if not is_entered or self._clock.monotonic() < self._not_before:
                return
            # A device that runs in an epoch with a default reports on it sooner or later.
            waiting = waiting_epochs(self._bundle, self._clock.now())
            due = self._due_epochs(has_waiting=bool(waiting) or self._state.waiting() > 0)
            ends = self._clock.monotonic() + timeout_seconds
            # A failed request for daily epochs does not stop one for hourly epochs.
            fetched = [
                self._is_fetched(self._ask, *kind, ends - self._clock.monotonic()) for kind in due
            ]
            if all(fetched):
                self._failures = 0
            else:
                self._failures += 1
                self._not_before = self._clock.monotonic() + min(
                    soon(self._failures), _APART_SECONDS
                )

    def seconds_to_next(self) -> float | None:
        """Returns seconds until the next request that no report waits for; None with no issuer."""
        if self._ask is None:
            return None
        now = self._clock.now()
        moments = [
            self._moment(length, epoch) - now
            for length in self._lengths
            for epoch in (epoch_at(now, length) + 1,)
            if (length, epoch) not in self._answered
        ]
        ends = [epoch_start(epoch_at(now, length) + 1, length) - now for length in self._lengths]
        put_off = self._not_before - self._clock.monotonic()
        if self._unrequested_epochs():
            moments.append(0.0)
        return max(_SHORTEST_SECONDS, put_off, min([*moments, *ends]))

    def seconds_to_retry(self) -> float | None:
        """Returns seconds until reports may have tokens; None if no failed request is the cause."""
        if not (self._failures and self._lacking):
            return None
        return max(0.0, self._not_before - self._clock.monotonic())

    def give(self, reports: Sequence[OutboxReport]) -> Mapping[int, Minted]:
        """Assigns tokens to reports for good; others are held. If it fails, no report may leave."""
        now, streams = self._clock.now(), self._bundle.streams
        pairs = [(r.id, (r.stream, r.epoch, self._key)) for r in reports]

        def change(wallet: Wallet) -> dict[int, Minted]:
            wallet.close(
                (name, epoch)
                for name, epoch in wallet.periods
                if name not in streams or now >= late_from(epoch, streams[name].epoch)
            )
            return wallet.give(pairs)

        tokens = self._state.wallet(change)
        self._state.release(number for number, _ in pairs if number not in tokens)
        self._lacking |= {kind for number, kind in pairs if number not in tokens}
        return tokens

    def settle(self, reports: Iterable[int]) -> None:
        """Forgets the tokens of reports that are done, or whose tokens were spent before."""
        gone = list(reports)
        if gone:
            self._state.wallet(lambda wallet: wallet.settle(gone))

    @property
    def _lengths(self) -> list[str]:
        return sorted({metric.epoch for metric in self._bundle.streams.values()})

    def _kinds(self, length: str, epoch: int) -> dict[Kind, int]:
        """Returns what one request contains: numbers of tokens, in the order of names."""
        return {
            (name, epoch, self._key): metric.limits.reports_per_epoch
            for name, metric in sorted(self._bundle.streams.items())
            if metric.epoch == length
        }

    def _due_epochs(self, *, has_waiting: bool) -> list[tuple[str, int]]:
        now = self._clock.now()
        due = []
        for length in self._lengths:
            running = epoch_at(now, length)
            if now >= self._moment(length, running + 1):
                due.append((length, running + 1))
            if has_waiting:
                due.append((length, running))
        due += self._unrequested_epochs()
        return [fromkey for fromkey in dict.fromkeys(due) if self._is_open(*fromkey)]

    def _unrequested_epochs(self) -> list[tuple[str, int]]:
        """Returns epochs of waiting reports for which the issuer was not asked yet."""
        streams = self._bundle.streams
        pairs = ((name, epoch) for name, epoch, _ in self._lacking if name in streams)
        kinds = ((streams[name].epoch, epoch) for name, epoch in pairs)
        return [kind for kind in kinds if kind not in self._answered]

    def _is_open(self, length: str, epoch: int) -> bool:
        """Returns whether the issuer has not answered for this epoch, in any process."""
        if (length, epoch) in self._answered:
            return False
        if self._clock.now() >= late_from(epoch, length):
            return False
        kinds = self._kinds(length, epoch)
        is_answered = self._state.wallet(lambda wallet: kinds.keys() <= wallet.free.keys())
        if is_answered:
            self._note(length, epoch)
        return not is_answered

    def _moment(self, length: str, epoch: int) -> float:
        """Returns the time of the request for an epoch: a moment of the previous epoch."""
        # PRIVACY: it follows from the secret alone, and does not reveal when the device reports.
        memo = DeviceMemo(self._state.device_state().secret, "tokens")
        step = memo.coins(f"{length}|{epoch}".encode()).below(_STEPS)
        before, after = epoch_start(epoch - 1, length), epoch_start(epoch, length)
        return before + (after - before) * step / _STEPS

    def _is_fetched(
        self, ask: "AskIssuer", length: str, epoch: int, timeout_seconds: float
    ) -> bool:
        if timeout_seconds <= 0:
            return False
        try:
            self._fetch(ask, length, epoch, timeout_seconds)
        except NotSent as error:
            message = "reports wait for tokens: the issuer answers %s"
            self._diagnostics.warn_once(error.reason, message, error.cause or error.reason)
        except BadParameter as error:
            # PRIVACY: an issuer cannot mark one person's reports by a separate key.
            self._diagnostics.warn_once("tokens", "tokens are refused: %s", error)
        else:
            return True
        return False

    def _fetch(self, ask: "AskIssuer", length: str, epoch: int, timeout_seconds: float) -> None:
        # A client without tokens need not have rbcl.
        from hubbub.client.transport import messages  # noqa: PLC0415 as above
        from hubbub.tokens import poprf  # noqa: PLC0415 as above

        issuer = self._bundle.tokens
        if issuer is None:
            return
        new_inputs = {
            kind: [(new_nonce(), poprf.new_blind()) for _ in range(number)]
            for kind, number in self._kinds(length, epoch).items()
        }
        requests: dict[Kind, Inputs] = self._state.wallet(lambda wallet: wallet.ask(new_inputs))
        if requests:
            inputs = {
                kind: [(nonce, poprf.blind(nonce, blinding)) for nonce, blinding in pairs]
                for kind, pairs in requests.items()
            }
            sent = {
                kind[:2]: [token_input.element for _, token_input in evaluations]
                for kind, evaluations in inputs.items()
            }
            answer = ask(messages.token_request_of(sent), timeout_seconds)
            issued = messages.issued_in(answer, len(sent))
            minted: dict[Kind, list[Minted]] = {}
            wrong: BadParameter | None = None
            for (kind, blinded_pairs), evaluation in zip(inputs.items(), issued, strict=True):
                if evaluation is None:
                    self._diagnostics.warn_once("tokens_not_given", _NOT_GIVEN, kind[0])
                    continue  # the next process asks again: the issuer may know the stream by then
                evaluated, proof = evaluation
                arguments = (evaluated, proof, issuer.public, token_info(*kind[:2]))
                # An issuer with another stream table may give only the first tokens.
                evaluations = blinded_pairs[: len(evaluated)]
                if not evaluated:  # for another device of the account
                    self._diagnostics.warn_once("tokens_had", _TOKENS_HAD, kind[0])
                try:
                    outputs = poprf.finalize(evaluations, *arguments) if evaluated else []
                except BadParameter as error:
                    wrong = error  # of this stream alone; the next request is the same
                    continue
                nonces = (nonce for nonce, _ in evaluations)
                minted[kind] = [Minted(*pair) for pair in zip(nonces, outputs, strict=False)]
            self._state.wallet(lambda wallet: wallet.keep(minted))
            self._lacking -= minted.keys()
            if wrong:
                raise wrong
        self._note(length, epoch)

    def _note(self, length: str, epoch: int) -> None:
        self._answered.add((length, epoch))
        # The next attempt finds the held reports that have tokens now.
        self._lacking -= self._kinds(length, epoch).keys()


def asking(bundle: Bundle, account: "Account | None") -> "AskIssuer | None":
    """Returns the function that asks the bundle's issuer, if it names one. Raises BadParameter."""
    if bundle.tokens is None:
        return None
    if account is None:
        raise BadParameter(
            "the bundle's reports need tokens: give account=KEY, an account's key at "
            f"{bundle.tokens.terms.issuer} (or HUBBUB_ACCOUNT), or a function that requests them"
        )
    if not is_installed("rbcl"):
        raise BadParameter(f"tokens need rbcl: {install_with('tokens')}")
    from hubbub.client.transport import issuer_connection  # noqa: PLC0415 only tokens need HTTP

    if isinstance(account, str):
        return issuer_connection.ask_issuer(bundle.tokens.terms.issuer, account, bundle.roots)
    return issuer_connection.ask_by_app(account)
