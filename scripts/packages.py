#!/usr/bin/env python3
"""Installs the packages that scripts/dist.py has built, and uses them, on systems that have next to nothing: `make test ALL=1`.

    packages.py PACKAGES    the folder with them

    the Debian package    in a minimal system that mmdebstrap makes: a program in C is compiled with it and recorded, and the trace is read
    the tarballs          in an empty folder, for other machines by qemu-user: they print the same as each other
    the wheels            in the minimal system with Python

Only root can make these systems here. Parts that cannot be tried say so.
"""

import contextlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

CLONE = pathlib.Path(__file__).resolve().parent.parent
# The minimal system has these besides what every Debian has.
WITH = "gcc,libc6-dev,pkg-config,python3"
SOURCE = r"""
#include <kymo/kymo.h>
KYMO_EVENT(shop, sold, KYMO_U32(count), KYMO_TEXT(what));
int main(void)
{
    for (unsigned count = 0; count < 1000; ++count)
        kymo_shop_sold(count, "apples");
    return 0;
}
"""
SOLD = re.compile(r"^ *1,?000 .* shop:sold$", re.MULTILINE)


def run(*words, root=None, **more):
    """Runs a command, in a root of its own if one is named; returns its output."""
    words = [str(word) for word in words]
    if root is not None:
        words = ["chroot", str(root), "env", "-i", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "LC_ALL=C.UTF-8", *words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit status {done.returncode}\n{output}")
    return output


def passed(what):
    print(f"{what} ... ok", flush=True)


@contextlib.contextmanager
def system():
    """A minimal system with the kernel's file systems in it."""
    with tempfile.TemporaryDirectory(prefix="kymo-packages-") as folder:
        root = pathlib.Path(folder) / "root"
        words = open("/etc/os-release").read()
        suite = words.split("VERSION_CODENAME=")[1].split("\n")[0]
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={WITH}", suite, root)
        mounted = []
        try:
            for kind, path in (("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev/shm"), ("tmpfs", "tmp")):
                (root / path).mkdir(exist_ok=True)
                run("mount", "-t", kind, "none", root / path)
                mounted.append(root / path)
            yield root
        finally:
            for path in reversed(mounted):
                subprocess.run(["umount", "--lazy", path], check=False)


def debian(root, package):
    """Installs the package, uses all of it, and removes it."""
    shutil.copy(package, root / "tmp/kymograph.deb")
    run("dpkg", "--install", "/tmp/kymograph.deb", root=root)
    (root / "tmp/shop.c").write_text(SOURCE)
    flags = run("pkg-config", "--cflags", "--libs", "kymo", root=root).split()
    run("gcc", "-Wall", "-Werror", "-o", "/tmp/shop", "/tmp/shop.c", *flags, root=root)
    run("gcc", "-static", "-o", "/tmp/shop-static", "/tmp/shop.c", *flags, root=root)
    for program in ("shop", "shop-static"):
        said = run("kymo", "record", "--output", f"/tmp/{program}-trace", "--", f"/tmp/{program}", root=root)
        assert "1,000 events" in said or "1000 events" in said, said
        counted = run("kymo", "count", f"/tmp/{program}-trace", root=root)
        assert SOLD.search(counted), counted
    passed("the Debian package records a program in C and counts its events")
    pages = run("gzip", "--decompress", "--stdout", "/usr/share/man/man1/kymo-record.1.gz", root=root)
    assert ".TH kymo-record" in pages, pages
    run("bash", "-n", "/usr/share/bash-completion/completions/kymo", root=root)
    view(root)
    run("dpkg", "--remove", "kymograph", root=root)
    left = [path for path in (root / "usr").rglob("*kymo*")]
    assert not left, left
    passed("the Debian package has manual pages, completions and the viewer's pages, and is removed without a trace")


def view(root):
    """The viewer's pages are in the command."""
    words = ["chroot", str(root), "kymo", "view", "--no-browser", "--port", "0", "/tmp/shop-trace"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
            # No proxy leads to this machine.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            page = opener.open(address, timeout=60).read().decode()
            assert "<script" in page and "assets/" in page, page
        finally:
            server.terminate()


def alone(packages, folder, trace):
    """Each tarball's command in a folder that has nothing else."""
    printed = {}
    for packed in sorted(packages.glob("kymo-*-linux.tar.gz")):
        machine = packed.name.split("-")[2]
        with tarfile.open(packed) as tar:
            tar.extractall(folder, filter="data")
        root = folder / packed.name.removesuffix(".tar.gz")
        emulator = []
        if machine != platform.machine():
            found = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
            if found is None:
                print(f"NOT TESTED: {packed.name}, because there is no qemu-{machine}")
                continue
            emulator = [found]
        assert machine in run(*emulator, root / "bin/kymo", "--version").replace("-", "_")
        if not emulator and os.geteuid() == 0:
            shutil.copytree(trace, root / "trace")
            run("chroot", root, "/bin/kymo", "count", "/trace")
            passed(f"{packed.name} runs where there is nothing else")
        printed[machine] = run(*emulator, root / "bin/kymo", "print", trace)
        assert printed[machine].count("\n") >= 1000
    assert len(set(printed.values())) == 1, f"{packages} has tarballs of {list(printed)} that print different events, or none"
    if len(printed) > 1:
        passed(f"the tarballs for {' and '.join(printed)} print the same")


def wheels(root, packages):
    """Python imports what is in the wheels; kymograph_sql takes the place of the library in kymograph."""
    code = "import kymograph; trace = kymograph.open('/tmp/shop-trace'); print(trace.count(event='shop:sold')['count'].rows())"
    for wheel in sorted(packages.glob("kymograph-*.whl")) + sorted(packages.glob("kymograph_sql-*.whl")):
        shutil.copy(wheel, root / "tmp")
        run("python3", "-m", "zipfile", "--extract", f"/tmp/{wheel.name}", "/tmp/site", root=root)
        said = run("env", "PYTHONPATH=/tmp/site", "python3", "-c", code, root=root)
        assert "('shop:sold', 1000, " in said, said
        passed(f"{wheel.name} reads a trace in the minimal system")


def main():
    packages = pathlib.Path(sys.argv[1]).resolve()
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=packages)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        print("NOT TESTED: the packages in a minimal system, which root makes with mmdebstrap")
        return
    with system() as root, tempfile.TemporaryDirectory(prefix="kymo-alone-") as folder:
        for package in packages.glob("*.deb"):
            debian(root, package)
        wheels(root, packages)
        alone(packages, pathlib.Path(folder), root / "tmp/shop-trace")


if __name__ == "__main__":
    main()
