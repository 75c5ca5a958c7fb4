"""Floor 1. Sealing for the aggregator: of payloads by devices, of dummies by the shuffler."""

from hubbub.sealing.count_noise import CountNoise
from hubbub.sealing.hpke import TAG_BYTES, filler_info, open_sealed, seal, seal_info
from hubbub.sealing.kems import (
    KEMS,
    SEAL_BYTES,
    SEED_BYTES,
    X25519,
    X_WING,
    Kem,
    PrivateKey,
    PublicKey,
    x_wing_private,
    x_wing_public,
    x_wing_public_bytes,
)

__all__ = [
    "KEMS",
    "SEAL_BYTES",
    "SEED_BYTES",
    "TAG_BYTES",
    "X25519",
    "X_WING",
    "CountNoise",
    "Kem",
    "PrivateKey",
    "PublicKey",
    "filler_info",
    "open_sealed",
    "seal",
    "seal_info",
    "x_wing_private",
    "x_wing_public",
    "x_wing_public_bytes",
]
