"""Every error that hubbub raises on purpose, as one tree.

HubbubError
├── BadParameter          something is built from a parameter that cannot be
│   └── NothingToLookFor  strings are asked for, and none was named
├── ValueOutOfDomain      the app reported a value that the metric does not have
│   └── NotListed         it is not one of the metric's list
├── BadPayload            bytes that no honest client sends
├── ShapeMismatch         totals of another shape than the mechanism's layout
├── UnknownMetric         a metric that this catalog or bundle does not have
├── UnknownMark           no mark is set under this name
├── UnknownList           no list of candidates is saved under this name
├── CatalogInvalid        metrics.toml is wrong
├── BundleRefused         a bundle is malformed, wrongly signed, or changes what may not change
├── NoticeRefused         a notice is malformed, wrongly signed, or nobody's that the app trusts
├── ModelsRefused         the state of models is malformed, wrongly signed, or nobody's one trusts
├── LogBroken             a transparency log is not what it signed, or forked
├── KeysUnusable          a key file is missing, malformed, or readable by others
├── StateUnusable         a device's or a service's state folder cannot be read or written
│   └── StateBusy         other processes write to it all the time
├── BackupUnusable        a backup is damaged, or would go where something is
├── StoreUnavailable      Redis cannot be reached, or is not fit to keep what it must
│   ├── StoreFull         Redis takes no more until something was taken out
│   └── TotalsUnreadable  what Redis holds of these epochs nobody can read
├── AccessRefused         no token, one that is not known, or one that may not
├── ServiceUnavailable    a service cannot be reached, or cannot start
├── BatchTooSmall         fewer reports than the metric's minimum batch
├── TooFewEpochs          a comparison needs one more epoch than there is
├── BudgetExhausted       a release would spend more than its purpose has left
├── ProofFailed           a mechanism does not keep what it promises
└── MissingDependency     a library that this takes is not installed

A message names what, where and the remedy. It never holds a raw value.
"""


class HubbubError(Exception):
    """Anything that hubbub refuses or cannot do, with a message for people."""


class BadParameter(HubbubError):
    """A parameter is missing, unknown, or outside its range."""


class ValueOutOfDomain(HubbubError):
    """A value that the metric does not have. The message says only the rule."""


class NotListed(ValueOutOfDomain):
    """A value that is not one of the metric's list."""


class BadPayload(HubbubError):
    """Bytes of a length, range or padding that no honest client sends."""


class ShapeMismatch(HubbubError):
    """Totals of another shape than the mechanism's layout."""


class UnknownMetric(HubbubError):
    """A metric that this catalog or bundle does not have."""


class NothingToLookFor(BadParameter):
    """A metric over strings was asked without a string to look for, and its catalog lists none."""


class UnknownList(HubbubError):
    """No list of candidates is saved under this name; the message says which are."""


class UnknownMark(HubbubError):
    """No mark is set under this name; the message says which are."""


class CatalogInvalid(HubbubError):
    """metrics.toml is wrong. The message names file, line, metric, field and remedy."""


class BundleRefused(HubbubError):
    """A bundle is malformed, wrongly signed, or changes what may not change under a name."""


class NoticeRefused(HubbubError):
    """A notice is malformed, altered, too long, or another operator's than the bundle's."""


class ModelsRefused(HubbubError):
    """The state of models is malformed, altered, too long, or another operator's."""


class LogBroken(HubbubError):
    """A transparency log lacks something, is not what it signed, or was shown otherwise."""


class KeysUnusable(HubbubError):
    """A key file is missing, malformed, or readable by others."""


class StateUnusable(HubbubError):
    """A state folder cannot be read or written."""


class StateBusy(StateUnusable):
    """The state is in use: by other processes all the time, or by this thread's own call."""


class BackupUnusable(HubbubError):
    """A backup is damaged, opens by another key, or would go where something is already."""


class StoreUnavailable(HubbubError):
    """Redis cannot be reached, refused us, or is not fit to keep what it must."""


class StoreFull(StoreUnavailable):
    """Redis takes no more until something was taken out of it."""


class TotalsUnreadable(StoreUnavailable):
    """Redis answers, but what it holds of these epochs nobody can read; of others it may."""


class AccessRefused(HubbubError):
    """Who asks has no token, one that is not known or has expired, or one whose role may not."""


class ServiceUnavailable(HubbubError):
    """A service cannot be reached, or cannot start."""


class BatchTooSmall(HubbubError):
    """Fewer reports than the metric's minimum batch."""


class TooFewEpochs(HubbubError):
    """Two epochs were to be compared, and there is one, or none; the message says which is next."""


class BudgetExhausted(HubbubError):
    """A release would spend more than its purpose has left this year."""


class ProofFailed(HubbubError):
    """A mechanism does not keep what it promises. The message says which promise."""


class MissingDependency(HubbubError):
    """A library that is optional is not installed, and this cannot be done without."""
