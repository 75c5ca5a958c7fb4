"""hubbub: usage statistics under local differential privacy. `__version__` says which this is.

Becomes `hubbub/__init__.py` of the wheel, where all packages are in one folder. The sources have
none: there `hubbub` is a namespace over several roots.
"""


def __getattr__(name: str) -> str:
    """The version of what is installed, looked up where it is asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415 takes longer than the rest

    return version("hubbub-client")
