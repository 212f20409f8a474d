"""Small values that questions about files are answered with."""

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
    """What can be written to: files of text or bytes."""

    def write(self, text: Any, /) -> object: ...


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a trace."""

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
        """What the native part says."""
        return cls(pathlib.Path(path), rows, replaced_texts)


def findings(*paths: StrPath) -> list[Finding]:
    """Everything that is wrong with traces, where, and what to do, even if they cannot be opened.

    >>> [finding.severity for finding in kymograph.findings("nowhere")]
    ['error']
    """
    return [Finding(**each) for each in json.loads(_native.findings([os.fspath(path) for path in paths]))]
