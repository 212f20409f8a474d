"""The ``kymo`` command that the wheel installs."""

import signal
import sys
from typing import NoReturn

from kymograph._native import run_command


def main() -> NoReturn:
    """Runs the program ``kymo``, and exits with its status."""
    # The interpreter only notes Ctrl-C, to raise an exception in Python code that never comes.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    run_command(["kymo", *sys.argv[1:]])
    raise AssertionError("the command ends the process")


if __name__ == "__main__":
    main()
