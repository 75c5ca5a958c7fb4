"""Floor 1. How a payload is sealed for the aggregator: by devices, and dummies by the shuffler."""

from hubbub.sealing.hpke import SEAL_BYTES, TAG_BYTES, open_sealed, seal, seal_info

__all__ = ["SEAL_BYTES", "TAG_BYTES", "open_sealed", "seal", "seal_info"]
