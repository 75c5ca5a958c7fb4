"""Names of the pool's keys in Redis; pool.py says what each holds."""

from hubbub.shuffler.shards import Place


def keys_of(place: Place, *parts: str) -> list[str]:
    """The keys of one place's parts, all on one slot of a Cluster."""
    return [place.key(f"shuffler:{part}") for part in parts]


def batch_key(place: Place, batch_id: bytes) -> str:
    """The key of a batch in flight; with an empty id, the prefix of all of them."""
    return f"{place.key('shuffler:batch')}:{batch_id.hex()}"


def crowd_key(place: Place, crowd_id: bytes, what: str = "crowd") -> str:
    """The key of a crowd's reports or dummies; with an empty id, the prefix of all of them."""
    return f"{place.key(f'shuffler:{what}')}:{crowd_id.hex()}"
