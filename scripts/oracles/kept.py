"""Keeps what oracles answer: an oracle is asked the same question about the same trace only once.

    ~/.cache/kymograph/oracles/HASH     one answer: output, errors, seconds

The hash is of the program and all modules beside it, of the contents of the files and folders among the arguments, of the other arguments, and
of the versions of Python and babeltrace2's library. `KYMO_ORACLES=ask` asks anew, and keeps nothing. Answers that were not used for 30 days are removed.
"""

import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kymograph" / "oracles"
DAYS_MAX = 30
# Larger traces are asked about anew: reading them takes as long as some answers.
BYTES_MAX = 1 << 30


@functools.lru_cache(maxsize=None)
def content(path):
    """The hash of a file, or of all files of a folder with their names."""
    digest = hashlib.sha256()
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if sum(file.stat().st_size for file in files) > BYTES_MAX:
        return None
    for file in files:
        name = str(file.relative_to(path) if path.is_dir() else file.name).encode()
        data = file.read_bytes()
        digest.update(b"%d %d " % (len(name), len(data)) + name + data)
    return digest.hexdigest()


@functools.lru_cache(maxsize=None)
def versions(python):
    """The versions of Python and of babeltrace2's library, on which answers may depend."""
    script = "import sys, bt2; print(sys.version, getattr(bt2, '__version__', ''))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=False).stdout


@functools.lru_cache(maxsize=None)
def modules(folder):
    """The hashes of all oracles of a folder: they import each other."""
    return [content(file) for file in sorted(folder.glob("*.py"))]


def key(command):
    """One name for a question; `None`: it is not to be kept."""
    python, program, *arguments = map(str, command)
    digest = hashlib.sha256()
    words = [versions(python), pathlib.Path(program).name, *modules(pathlib.Path(program).resolve().parent)]
    for argument in arguments:
        path = pathlib.Path(argument)
        # An option may be longer than a name of a file can be.
        if len(argument) < 200 and path.exists():
            found = content(path.resolve())
            if found is None:
                return None
            words.append(found)
        else:
            words.append(argument)
    digest.update(json.dumps(words).encode())
    return digest.hexdigest()


def ask(command, timeout):
    """What a program answered, as `subprocess.run` gives it, and how many seconds it took when it was asked."""
    name = None if os.environ.get("KYMO_ORACLES") == "ask" else key(command)
    file = FOLDER / name if name else None
    if file and file.exists():
        try:
            known = json.loads(file.read_text())
            os.utime(file)
            return subprocess.CompletedProcess(command, 0, known["stdout"], known["stderr"]), known["seconds"]
        except (OSError, ValueError, KeyError):
            pass
    begin = time.monotonic()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout, check=False)
    seconds = time.monotonic() - begin
    # A program that fails may have had no memory: it is asked again.
    if file and done.returncode == 0:
        keep(file, {"stdout": done.stdout, "stderr": done.stderr, "seconds": seconds})
    return done, seconds


def keep(file, answer):
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        number, making = tempfile.mkstemp(dir=FOLDER, prefix="making.")
        with os.fdopen(number, "w") as out:
            json.dump(answer, out)
        os.replace(making, file)
    except OSError as error:
        print(f"not kept: {error}", file=sys.stderr)


def remove_old():
    """Removes answers that were not used for 30 days."""
    oldest = time.time() - DAYS_MAX * 24 * 3600
    for file in FOLDER.glob("*"):
        try:
            if file.stat().st_mtime < oldest:
                file.unlink()
        except OSError:
            pass
