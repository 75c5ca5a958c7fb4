"""The names of the pool's keys in Redis; pool.py says what each holds."""

from hubbub.shuffler.shards import Place


def keys_of(place: Place, *parts: str) -> list[str]:
    """Of one place, all on one slot of a Cluster."""
    return [place.key(f"shuffler:{part}") for part in parts]


def batch_key(place: Place, batch_id: bytes) -> str:
    """Of a batch in flight; without an id, what all of them begin with."""
    return f"{place.key('shuffler:batch')}:{batch_id.hex()}"


def crowd_key(place: Place, crowd_id: bytes, what: str = "crowd") -> str:
    """Of a crowd's reports, or of its dummies; without an id, what all of them begin with."""
    return f"{place.key(f'shuffler:{what}')}:{crowd_id.hex()}"
