"""The native part of `kymograph`; what is written for people is beside it."""

import os
from collections.abc import Sequence
from typing import NoReturn

__version__: str

def cache_folder() -> str | None: ...
def run_command(words: Sequence[str]) -> NoReturn: ...

class Session:
    def __init__(
        self, paths: Sequence[str | os.PathLike[str]], threads: int, clock_shift_ns: int, cache: str | None
    ) -> None: ...
    def info(self, exact: bool) -> tuple[str, str, str]: ...
    def summary(self) -> str: ...
