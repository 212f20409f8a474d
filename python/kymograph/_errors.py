"""What goes wrong: each with the text that the command ``kymo`` prints after ``error:``."""


class Error(Exception):
    """Something that kymograph cannot do. All its exceptions are such."""


class OpenError(Error):
    """There is no trace, or none that can be understood.

    >>> kymograph.open("nowhere")
    Traceback (most recent call last):
      ...
    kymograph.OpenError: nowhere: No such file or directory (os error 2)
    """


class QuestionError(Error, ValueError):
    """The question is wrong: an expression, an option, a name that there is not.

    >>> trace.count(where="queue_dept > 3")
    Traceback (most recent call last):
      ...
    kymograph.QuestionError: no class of events has `queue_dept`
        queue_dept > 3
        ^^^^^^^^^^
    help: there is `queue_depth`
    """


class UnanswerableError(Error):
    """The traces do not hold what would answer the question.

    >>> trace.cpu()
    Traceback (most recent call last):
      ...
    kymograph.UnanswerableError: no event of these traces has the role `thread_switch`: ...
    """


class ReadError(Error):
    """Reading cannot go on."""


class UnsliceableError(ReadError):
    """Parts of the trace cannot be read by themselves: its packets do not tell the times of their events."""


class OtherTraceError(ReadError):
    """What was shared out is of another trace than the one that is here."""


class WriteError(Error):
    """A file cannot be written."""


class ForkError(Error):
    """What a process has begun cannot go on in its child; a trace can be asked there anew."""


class MemoryLimitError(Error, MemoryError):
    """A query needs more memory than it may have, and cannot put aside what it holds."""


class NotInstalledError(Error, ImportError):
    """A part of kymograph that is installed by itself is not there."""


class CheckError(Error, AssertionError):
    """An analysis says something else of pieces than of the whole."""

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
    """Something to know of an answer."""


class UnreadableWarning(KymographWarning):
    """Something of a trace could not be read: the answer lacks it, and its report says what."""


class LossWarning(KymographWarning):
    """The tracer lost something, and the result has no report that says so."""


class QuestionWarning(KymographWarning):
    """A part of a question means nothing for these traces: somebody mistyped something, perhaps."""


# They are named as people import them.
for _each in list(globals().values()):
    if isinstance(_each, type) and issubclass(_each, (Error, KymographWarning)):
        _each.__module__ = "kymograph"
