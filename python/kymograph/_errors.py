"""Exceptions. The text of each is the one that the command ``kymo`` prints after ``error:``."""


class Error(Exception):
    """Base class of all exceptions of kymograph."""


class OpenError(Error):
    """There is no trace, or kymograph cannot parse it.

    >>> kymograph.open("nowhere")
    Traceback (most recent call last):
      ...
    kymograph.OpenError: nowhere: No such file or directory (os error 2)
    """


class QuestionError(Error, ValueError):
    """The question has an error: in an expression, an option, or a name.

    >>> trace.count(where="queue_dept > 3")
    Traceback (most recent call last):
      ...
    kymograph.QuestionError: no class of events has `queue_dept`
        queue_dept > 3
        ^^^^^^^^^^
    help: there is `queue_depth`
    """


class UnanswerableError(Error):
    """The traces lack the data that the question needs.

    >>> trace.cpu()
    Traceback (most recent call last):
      ...
    kymograph.UnanswerableError: no event of these traces has the role `thread_switch`: ...
    """


class ReadError(Error):
    """Reading cannot continue."""


class UnsliceableError(ReadError):
    """Parts of the trace cannot be read independently: its packets do not give the times of their events."""


class OtherTraceError(ReadError):
    """A part of a question belongs to another trace than the one at its path here."""


class WriteError(Error):
    """A file cannot be written."""


class RecordError(Error):
    """It cannot be recorded, or the session is not there any more."""


class ForkError(Error):
    """A child process cannot continue an iteration or query of its parent. Ask the trace again in the child."""


class MemoryLimitError(Error, MemoryError):
    """A query needs more memory than its limit, and cannot spill to disk."""


class NotInstalledError(Error, ImportError):
    """An optional part of kymograph is not installed."""


class CheckError(Error, AssertionError):
    """An analysis gives another result for pieces than for the whole trace."""

    #: What is different, and where in the result.
    difference: str
    #: Behind which rows the pieces ended.
    cuts: tuple[int, ...]
    #: With this, `Trace.check` finds it again.
    seed: int

    def __init__(self, difference: str, cuts: tuple[int, ...], seed: int) -> None:
        super().__init__(difference, cuts, seed)
        self.difference, self.cuts, self.seed = difference, cuts, seed

    def __str__(self) -> str:
        return f"{self.difference} (pieces end behind rows {list(self.cuts)}; seed={self.seed})"


class KymographWarning(UserWarning):
    """A fact that affects an answer."""


class UnreadableWarning(KymographWarning):
    """A part of a trace could not be read and is missing from the answer; the report names it."""


class LossWarning(KymographWarning):
    """The tracer lost events, and the result has no report that could say so."""


class QuestionWarning(KymographWarning):
    """A part of a question matches nothing in these traces: perhaps a name is mistyped."""


# They are named as people import them.
for _each in list(globals().values()):
    if isinstance(_each, type) and issubclass(_each, (Error, KymographWarning)):
        _each.__module__ = "kymograph"
