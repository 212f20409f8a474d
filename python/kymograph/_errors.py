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


class UnreadableWarning(UserWarning):
    """Something of a trace could not be read: the answer lacks it, and its report says what."""


# They are named as people import them.
for _each in (Error, OpenError, UnreadableWarning):
    _each.__module__ = "kymograph"
