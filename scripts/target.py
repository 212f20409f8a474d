#!/usr/bin/env python3
"""The target folder of this clone. Each clone has one of its own, so that no clone tests what another one has built.

    target.py          prints it, and makes it; CARGO_TARGET_DIR names another one
    target.py keep     keeps the dependencies that are built there, for the next clone
    target.py tools    prints the folder of tools that all clones share: node modules, Python environments

    ~/.cache/kymograph/
        targets/NAME-HASH/     one for each clone; removed by the next new clone once its own clone is gone
        dependencies/KEY/      other people's crates, built by this compiler with this Cargo.lock
        tools/

A new target folder begins with the kept dependencies. Libraries are hard links: rustc and linkers replace such
files and never write into them. Files that cargo, rustc and build scripts write into are copied, with their times, by which cargo knows what is up to date.
"""

import errno
import fcntl
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import time

CLONE = pathlib.Path(__file__).resolve().parent.parent
PROFILE = "ci"
# Files that are replaced and never written into, so that clones can share them.
REPLACED = (".rlib", ".rmeta", ".so")
# A target folder whose clone is gone is removed when it was not used for so long: the clone may be on a disk that is not mounted now.
UNUSED_DAYS_MAX = 3
# Sets of dependencies that are kept; they have about 2 GB each.
KEPT_MAX = 3
# `NAME-0123456789abcdef`, as cargo names what belongs to one way of building one crate. A copy that was cut short begins with a dot.
UNIT = re.compile(r"^([^.].*)-([0-9a-f]{16})(?:\..*)?$")


def cache():
    """The cache of the user who runs `make`; under `sudo make install`, of the user who called sudo."""
    user = os.environ.get("SUDO_USER")
    home = pwd.getpwnam(user).pw_dir if user else os.path.expanduser("~")
    return pathlib.Path(home) / ".cache" / "kymograph"


def key():
    """What dependencies are built from: those of another key are not used."""
    digest = hashlib.sha256()
    digest.update(subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, cwd=CLONE, check=False).stdout)
    for name in ("Cargo.lock", "crates/unify/Cargo.toml"):
        digest.update((CLONE / name).read_bytes())
    # Of the workspace, only the tables that compile dependencies: versions and features, and the profile with the one that it inherits.
    for table in re.split(r"^(?=\[)", (CLONE / "Cargo.toml").read_text(), flags=re.MULTILINE):
        if re.match(rf"\[(workspace\.dependencies|profile\.({PROFILE}|release)\b)", table):
            digest.update(table.encode())
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


def copy(source, to, own):
    """Adds what belongs to dependencies to another folder of the same form, where it is not there yet."""
    units = set()
    for entry in os.scandir(source / ".fingerprint"):
        named = UNIT.match(entry.name)
        if named and named[1] not in own:
            units.add(named[2])
    # Fingerprints come last: by them cargo knows that all else is there.
    for folder in ("build", "deps", ".fingerprint"):
        (to / folder).mkdir(parents=True, exist_ok=True)
        if not (source / folder).is_dir():
            continue
        for entry in os.scandir(source / folder):
            named = UNIT.match(entry.name)
            target = to / folder / entry.name
            if named and named[2] in units and not target.exists():
                put(entry, target)


def put(entry, target):
    """Copies or links a file or a folder, which is there whole or not at all."""
    making = target.with_name(f".making-{os.getpid()}-{target.name}")
    if entry.is_dir():
        shutil.copytree(entry.path, making, symlinks=True)
    elif not entry.name.endswith(REPLACED):
        shutil.copy2(entry.path, making)
    else:
        try:
            os.link(entry.path, making)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
                raise
            shutil.copy2(entry.path, making)
    os.rename(making, target)


class Lock:
    """Lets one process at a time change what clones share."""

    def __enter__(self):
        cache().mkdir(parents=True, exist_ok=True)
        self.file = open(cache() / "lock", "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def keep(target):
    if not (target / PROFILE / ".fingerprint").is_dir():
        return
    with Lock():
        dependencies = cache() / "dependencies"
        kept = dependencies / key()
        copy(target / PROFILE, kept, own_packages())
        os.utime(kept)
        for old in sorted(dependencies.iterdir(), key=lambda entry: entry.stat().st_mtime)[:-KEPT_MAX]:
            shutil.rmtree(old, ignore_errors=True)


def make():
    """This clone's folder."""
    targets = cache() / "targets"
    name = re.sub(r"[^A-Za-z0-9._-]", "_", CLONE.name)
    target = targets / f"{name}-{hashlib.sha256(str(CLONE).encode()).hexdigest()[:8]}"
    clone = target / "clone"
    if os.environ.get("SUDO_USER"):
        # What root made in it would be root's.
        return target
    if clone.exists():
        os.utime(clone)
        return target
    with Lock():
        target.mkdir(parents=True, exist_ok=True)
        for other in targets.glob("*/clone"):
            is_old = time.time() - other.stat().st_mtime > UNUSED_DAYS_MAX * 24 * 3600
            if is_old and not os.path.isdir(other.read_text()):
                shutil.rmtree(other.parent, ignore_errors=True)
        kept = cache() / "dependencies" / key()
        if kept.is_dir():
            copy(kept, target / PROFILE, set())
        clone.write_text(str(CLONE))
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
