"""Chooses the native library: the one with SQL if the package `kymograph_sql` is installed, else our own. Never both, so that
types, caches and the command are one."""

import sys

#: Both packages' version; the tests compare it with theirs.
VERSION = "0.1.0"

#: What is said where SQL is asked for and not there.
WITHOUT_SQL = f"this kymograph has no SQL: `pip install 'kymograph[sql]=={VERSION}'`, or of its source `make wheel-sql`"


def choose() -> None:
    """Makes the library with SQL importable as `kymograph._native`."""
    try:
        from kymograph_sql import _native  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "kymograph_sql":
            raise
        return
    if _native.__version__ != VERSION:
        import warnings

        from kymograph._errors import KymographWarning

        told = f"kymograph {VERSION} has no SQL, as kymograph-sql {_native.__version__} is of another version: "
        warnings.warn(f"{told}`pip install 'kymograph[sql]=={VERSION}'`", KymographWarning, stacklevel=3)
        return
    sys.modules["kymograph._native"] = _native
    # As if it had been imported as that.
    setattr(sys.modules["kymograph"], "_native", _native)
