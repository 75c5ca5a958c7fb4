"""Refuses randomizers whose batches are too large, or that a crowd cannot hide."""

from typing import Final

from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism
from hubbub.sealing.kems import SEAL_BYTES, X25519, Kem

# A batch is sent as one message; the services refuse larger messages.
MAX_BATCH_BYTES: Final = 64 << 20
# Bytes that framing adds to a sealed report, rounded up.
_FRAME_BYTES: Final = 16


def refuse_large_batch(min_batch: int, randomizer: AnyMechanism, kem: Kem) -> None:
    """Raises BadParameter if a batch of `min_batch` reports exceeds one message."""
    sealed_bytes = randomizer.layout.payload_bytes + SEAL_BYTES[kem]
    batch_bytes = min_batch * (sealed_bytes + _FRAME_BYTES)
    if not batch_bytes <= MAX_BATCH_BYTES:
        size = f"{batch_bytes / (1 << 20):.1f} MiB, above {MAX_BATCH_BYTES >> 20}"
        raise BadParameter(
            f"a minimum batch of {min_batch} reports is {size}; "
            "lower min_batch or choose a shorter payload"
            + (", or leave kem out" if kem != X25519 else "")
        )


def refuse_uneven_lies(mechanism: str, randomizer: AnyMechanism) -> None:
    """Raises BadParameter for a crowd with a mechanism for which no amplification is proven."""
    from hubbub.mechanisms.even_noise import lies_evenly  # noqa: PLC0415 of crowds alone

    if not lies_evenly(randomizer):
        raise BadParameter(
            f"{mechanism}: its noise is not spread evenly, so nothing is proven of its "
            "crowd; write fewer parts, or a larger epsilon"
        )
