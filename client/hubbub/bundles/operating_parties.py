"""The parties that run the shuffler and the aggregator, as the operator signs them."""

from hubbub.fields.field import check, setting
from hubbub.fields.frozen import frozen
from hubbub.fields.kinds import text


@frozen()
class Runs:
    """The party that runs each service, as text for people: a name, and where it is.

    Raises BadParameter if a party is not a text.
    """

    shuffler: str = setting(
        text("names who runs the shuffler"),
        "Who runs the shuffler: sees addresses, and no answer.",
        '"Example Foundation, Oslo"',
    )
    aggregator: str = setting(
        text("names who runs the aggregator"),
        "Who runs the aggregator: sees randomized answers, and no address.",
        '"Example Ltd, Dublin"',
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def apart(self) -> bool:
        """Whether they are two parties, so that only together they could identify senders."""
        return self.shuffler.casefold() != self.aggregator.casefold()
