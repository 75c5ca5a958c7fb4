"""A catalog of devices that fill up what they have nothing to say of."""

from tests.support.catalogs import catalog_toml, metric_toml

FILLED = catalog_toml(
    metric_toml(
        "crash",
        mechanism="grr",
        epsilon=4.0,
        tiers=[0.5, 1.0],
        values=["gpu", "disk"],
        default="none",
        min_batch=20,
        lifetime_epsilon=9.0,
    ),
    metric_toml(
        "asked",
        mechanism="rr",
        epsilon=1.0,
        values=["no", "yes"],
        default="no",
        sampling=0.5,
        min_batch=20,
        lifetime_epsilon=500.0,
    ),
    cover=True,
)
STREAMS = ["asked", "crash", "crash/0.5", "crash/1"]
