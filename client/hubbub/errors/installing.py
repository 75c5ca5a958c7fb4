"""How a person adds an optional part of hubbub to an installation."""


def install_with(extra: str) -> str:
    """The command that installs this extra, for error messages.

    It names a wheel or a checkout: package indexes have no hubbub of ours, and whoever registers
    the name there would have their program run on our users' machines.
    """
    return f"pip install 'PATH[{extra}]', where PATH is hubbub's wheel or checkout"
