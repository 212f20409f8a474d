"""Small values: answers to questions about files."""

from __future__ import annotations

import json
import os
import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kymograph import _native

if TYPE_CHECKING:
    from kymograph._words import StrPath


class SupportsWrite(Protocol):
    """Files of text or bytes that can be written to."""

    def write(self, text: Any, /) -> object: ...


@dataclass(frozen=True)
class Finding:
    """A problem of a trace."""

    #: ``error``: something cannot be read; ``warning``: it can.
    severity: Literal["error", "warning"]
    #: What rule it breaks.
    rule: str
    #: It is read by assuming something.
    assumption: bool
    place: str
    message: str
    #: What to do.
    help: str | None
    #: How often it occurs in this file.
    times: int


@dataclass(frozen=True)
class ExportedTable:
    """A table that was written."""

    path: pathlib.Path
    rows: int
    #: Texts that are not valid: they have U+FFFD where they are not.
    replaced_texts: int

    @classmethod
    def of(cls, path: str, rows: int, replaced_texts: int) -> ExportedTable:
        """Makes findings from those of the native library."""
        return cls(pathlib.Path(path), rows, replaced_texts)


def findings(*paths: StrPath, definitions: StrPath | None = None, clock_frequency: int | None = None) -> list[Finding]:
    """All problems of traces, with place and remedy, even if the traces cannot be opened.

    >>> [finding.severity for finding in kymograph.findings("nowhere")]
    ['error']
    """
    from kymograph._trace import import_options

    imported = import_options(definitions, clock_frequency)
    return [Finding(**each) for each in json.loads(_native.findings([os.fspath(path) for path in paths], imported))]
