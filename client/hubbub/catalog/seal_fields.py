"""The field of a metric that says how its reports are sealed."""

from typing import Final

from hubbub.catalog.fields.field import entry
from hubbub.catalog.fields.kinds import one_of
from hubbub.sealing import KEMS

__all__ = ["KEM"]

KEM: Final = entry(
    one_of(lambda: KEMS),
    "What reports are sealed with: `x-wing` stays shut for who records them today and has a "
    "quantum computer one day; each is 1,088 bytes longer.",
    '"x-wing"',
    write='write kem = "x-wing", or leave it out',
    label="sealed by",
    defines=True,
)
