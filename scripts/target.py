#!/usr/bin/env python3
"""The target folder of this clone. Each clone has one of its own, so that no clone tests what another one has built.

    target.py          prints it, and makes it; CARGO_TARGET_DIR names another one
    target.py keep     keeps the dependencies that are built there, for the next clone
    target.py tools    prints the folder of tools that all clones share: node modules, Python environments

    ~/.cache/kymograph/
        targets/NAME-HASH/     one for each clone; removed by the next new clone once its own clone is gone
        dependencies/KEY/      other people's crates, built by this compiler with this Cargo.lock
        tools/

A new target folder begins with the kept dependencies. Libraries are hard links, because nobody writes into them: rustc and linkers replace
files. What cargo and build scripts write into is copied, with its times, by which cargo knows what is up to date.
"""

import hashlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

CLONE = pathlib.Path(__file__).resolve().parent.parent
PROFILE = "ci"
# Sets of dependencies that are kept; they have about 2 GB each.
KEPT_MAX = 3
# `NAME-0123456789abcdef`, as cargo names what belongs to one way of building one crate.
UNIT = re.compile(r"^(.*)-([0-9a-f]{16})(?:\..*)?$")


def cache():
    """Of the user who runs `make`, also where it is `sudo make install`."""
    user = os.environ.get("SUDO_USER")
    home = pwd.getpwnam(user).pw_dir if user else os.path.expanduser("~")
    return pathlib.Path(home) / ".cache" / "kymograph"


def key():
    """What dependencies are built from: those of another key are not used."""
    digest = hashlib.sha256()
    digest.update(subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, cwd=CLONE, check=False).stdout)
    for name in ("Cargo.lock", "Cargo.toml", "crates/unify/Cargo.toml"):
        digest.update((CLONE / name).read_bytes())
    return digest.hexdigest()[:16]


def own_packages():
    """Names of the workspace's packages."""
    manifests = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*Cargo.toml"], cwd=CLONE, stdout=subprocess.PIPE, text=True, check=True
    )
    names = set()
    for manifest in manifests.stdout.split():
        path = CLONE / manifest
        found = path.exists() and re.search(r'^\[package\]\nname = "(.*)"', path.read_text(), re.MULTILINE)
        if found:
            names.add(found[1])
    return names


def copy(source, to, own, link):
    """Adds what belongs to dependencies to another folder of the same form, where it is not there yet."""
    units = {}
    for entry in os.scandir(source / ".fingerprint"):
        named = UNIT.match(entry.name)
        if named and named[1] not in own:
            units[named[2]] = entry.name
    for folder in (".fingerprint", "build", "deps"):
        (to / folder).mkdir(parents=True, exist_ok=True)
        if not (source / folder).is_dir():
            continue
        for entry in os.scandir(source / folder):
            named = UNIT.match(entry.name)
            target = to / folder / entry.name
            if not named or named[2] not in units or target.exists():
                continue
            if entry.is_dir():
                shutil.copytree(entry.path, target, symlinks=True)
            else:
                link(entry.path, target)


def link(source, target):
    """A hard link; a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def keep(target):
    if not (target / PROFILE / ".fingerprint").is_dir():
        return
    dependencies = cache() / "dependencies"
    dependencies.mkdir(parents=True, exist_ok=True)
    kept = dependencies / key()
    if kept.exists():
        copy(target / PROFILE, kept, own_packages(), link)
        os.utime(kept)
    else:
        making = pathlib.Path(tempfile.mkdtemp(prefix="making.", dir=dependencies))
        copy(target / PROFILE, making, own_packages(), link)
        try:
            making.rename(kept)
        except OSError:
            # Another clone was quicker.
            shutil.rmtree(making)
    sets = sorted((entry for entry in dependencies.iterdir() if "." not in entry.name), key=lambda entry: entry.stat().st_mtime)
    for old in sets[:-KEPT_MAX]:
        shutil.rmtree(old, ignore_errors=True)


def make():
    """This clone's folder."""
    targets = cache() / "targets"
    target = targets / f"{CLONE.name}-{hashlib.sha256(str(CLONE).encode()).hexdigest()[:8]}"
    if (target / "clone").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for other in targets.iterdir():
        clone = other / "clone"
        if clone.exists() and not os.path.isdir(clone.read_text()):
            shutil.rmtree(other, ignore_errors=True)
    kept = cache() / "dependencies" / key()
    if kept.is_dir():
        copy(kept, target / PROFILE, set(), link)
    (target / "clone").write_text(str(CLONE))
    return target


def main():
    named = os.environ.get("CARGO_TARGET_DIR")
    words = sys.argv[1:]
    if words == []:
        print(named or make())
    elif words == ["keep"]:
        keep(pathlib.Path(named) if named else make())
    elif words == ["tools"]:
        tools = cache() / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        print(tools)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
