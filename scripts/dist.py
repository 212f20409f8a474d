#!/usr/bin/env python3
"""Builds the packages of a release: `make dist`.

    dist.py            all of them, in TARGET/dist
    dist.py --twice    the same, and again in other folders: both have to be equal, byte for byte
    dist.py --without wheels

    kymograph_VERSION_ARCH.deb          kymo, libkymo, headers, kymo.pc, manual pages, completions
    kymo-VERSION-MACHINE-linux.tar.gz   kymo alone, which needs no library: x86-64 and aarch64
    kymograph-VERSION-*.whl             the Python package, and kymograph_sql, which adds SQL
    SHA256SUMS

`kymo` is linked statically, also in the Debian package, so that one binary runs on every Linux. It contains the C library of GNU: with that of
musl, `kymo print` needs 1.4 times as long, because its copies and allocations are slower. The build takes the tracked files of the clone as they
are, copied to a folder of their own.

Equal bytes need: paths of the machine replaced in binaries, times of files set to the time of the commit, owners and order of files fixed.
"""

import argparse
import collections
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

CLONE = pathlib.Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
# Names of machines in Debian.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
LICENSE_FILES = re.compile(r"^(licen[sc]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
DESCRIPTION = """Tracing at memory speed: recorder, reader and viewer
 Kymograph records what programs do, and reads, filters, queries, analyses and
 shows traces of any size: CTF 1.8 and 2, as LTTng and barectf write them.
 .
 This package has the command kymo with its viewer, and libkymo, the tracer
 for programs in C and C++, with headers and a file for pkg-config."""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Kymograph

Files: *
Copyright: The Kymograph authors
License: MIT or Apache-2.0
Comment: The texts are in LICENSE-MIT beside this file and in
 /usr/share/common-licenses/Apache-2.0. kymo contains other people's code under
 the licenses in LICENSE-THIRD-PARTY.txt.
"""


class Build:
    """One build: where its source is, where it goes, and what it is called."""

    def __init__(self, folder, clone):
        self.source, self.target, self.out = folder / "source", folder / "target", folder / "packages"
        self.clone = clone
        self.version = re.search(r'^version = "(.*)"', (clone / "Cargo.toml").read_text(), re.MULTILINE)[1]
        git = lambda *words: subprocess.run(["git", *words], cwd=clone, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        self.epoch = int(git("log", "-1", "--format=%ct"))
        changed = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        self.commit = git("rev-parse", "--short=12", "HEAD") + changed
        self.date = time.strftime("%Y-%m-%d", time.gmtime(self.epoch))

    def run(self, *words, **more):
        """Runs a command in the copied source; returns its output."""
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "CARGO_TARGET_DIR": str(self.target), **more.pop("env", {})}
        more.setdefault("cwd", self.source)
        return subprocess.run([str(word) for word in words], env=environment, stdout=subprocess.PIPE, check=True, **more).stdout

    def copy_source(self):
        """The tracked files as they are now. Files that have not changed keep their times, by which cargo knows them."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=self.clone, stdout=subprocess.PIPE, check=True).stdout
        names = {name for name in listed.decode().split("\0") if name and (self.clone / name).is_file()}
        for name in names:
            old, new = self.source / name, self.clone / name
            if old.is_file() and old.read_bytes() == new.read_bytes():
                continue
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new, old)
        made = {"node_modules", "dist", ".built", "LICENSE-THIRD-PARTY.txt"}
        for path in [path for path in self.source.rglob("*") if path.is_file()]:
            relative = path.relative_to(self.source)
            if str(relative) not in names and not made.intersection(relative.parts):
                path.unlink()

    def cargo(self, machine, is_static, *words, **more):
        """Builds for a machine; paths of this one are replaced in the binaries. Returns the folder of profiles."""
        # Cargo would build everything again at each change of flags.
        target = self.target / ("static" if is_static else "dynamic")
        home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
        registries = [(path, "/usr/src/crates") for path in sorted((home / "registry/src").glob("*"))]
        compiler = dict(line.split(": ", 1) for line in self.run("rustc", "-vV").decode().splitlines() if ": " in line)
        # Where the sources of the standard library are installed, rustc names them instead of the place that it was built in.
        library = pathlib.Path(self.run("rustc", "--print", "sysroot").decode().strip()) / "lib/rustlib/src/rust"
        # rustc takes the last prefix that fits.
        replaced = [(library, f"/rustc/{compiler['commit-hash']}"), *registries, (target, "/usr/src/target"), (self.source, "/usr/src/kymograph")]
        flags = [f"--remap-path-prefix={path}={name}" for path, name in replaced]
        flags += ["-Clink-arg=-Wl,--build-id=sha1", *(["-Ctarget-feature=+crt-static"] if is_static else [])]
        environment = {
            "KYMO_VERSION": f"{self.version} ({self.commit}, {self.date}, {machine}-linux)",
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
            "CARGO_TARGET_DIR": str(target),
        }
        if machine != platform.machine():
            environment[f"CARGO_TARGET_{machine.upper()}_UNKNOWN_LINUX_GNU_LINKER"] = f"{machine}-linux-gnu-gcc"
        self.run(*words, "--target", f"{machine}-unknown-linux-gnu", env=environment, **more)
        return target / f"{machine}-unknown-linux-gnu"

    def kymo(self, machine):
        words = ["build", "--quiet", "--locked", "--profile", "dist", "--package", "kymo-cli"]
        return self.cargo(machine, True, "cargo", *words) / "dist" / "kymo"

    def libkymo(self, machine):
        words = ["build", "--quiet", "--locked", "--profile", "libkymo", "--package", "kymo-libkymo"]
        return self.cargo(machine, False, "cargo", *words) / "libkymo"

    def wheel(self, machine, python, project):
        # Both libraries have one name, so that cargo would take the one for the other that was built last.
        for old in self.target.glob("dynamic/*/dist/**/lib_native.so"):
            old.unlink()
        words = ["build", "--quiet", "--locked", "--profile", "dist", "--interpreter", python, "--out", self.out]
        self.cargo(machine, False, pathlib.Path(python).parent / "maturin", *words, cwd=self.source / project)

    def licenses(self, machine, packages, features):
        """Licenses of other people's code that these packages contain for a machine."""
        tree = self.run("cargo", "tree", "--locked", *[word for name in packages for word in ("--package", name)], "--features", features,
                        "--edges", "normal", "--target", f"{machine}-unknown-linux-gnu", "--prefix", "none", "--format", "{p}")
        used = {tuple(line.split()[:2]) for line in tree.decode().splitlines() if line}
        listed = json.loads(self.run("cargo", "metadata", "--locked", "--format-version", "1"))["packages"]
        texts = collections.defaultdict(list)
        for package in listed:
            if package["source"] is None or (package["name"], "v" + package["version"]) not in used:
                continue
            name = f"{package['name']} {package['version']} ({package['license']})"
            add(texts, name, pathlib.Path(package["manifest_path"]).parent, package["authors"])
        described = json.loads((self.source / "web/package.json").read_text())
        for name in described["dependencies"]:
            folder = self.source / "web/node_modules" / name
            about = json.loads((folder / "package.json").read_text())
            add(texts, f"{name} {about['version']} ({about['license']}), in the pages of kymo view", folder, [])
        parts = ["Kymograph contains code of the following projects, and of the standard library of Rust (MIT OR Apache-2.0,",
                 "https://www.rust-lang.org/policies/licenses) and of the GNU C library (LGPL 2.1 or later,",
                 "https://www.gnu.org/software/libc): the sources of Kymograph can be linked with another version of it."]
        for text, names in sorted(texts.items(), key=lambda item: item[1]):
            parts += ["", "=" * 80, *sorted(names), "-" * 80, text]
        return "\n".join(parts) + "\n"


def add(texts, name, folder, authors):
    """Adds the license files in a folder to those by text."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and LICENSE_FILES.match(path.name))
    for path in found:
        texts[path.read_text(errors="replace").strip()].append(name)
    if not found:
        texts[f"The package has no file with its license. Authors: {', '.join(authors) or 'not named'}"].append(name)


def shared_files(build, kymo):
    """Files that are the same for every machine, by path below /usr: manual pages, completions, licenses."""
    version = build.run(kymo, "--version").decode()
    assert build.commit in version, version
    files = {}
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md"):
        files[f"share/doc/kymograph/{name}"] = (build.source / name).read_bytes()
    for shell, path in {
        "bash": "bash-completion/completions/kymo",
        "zsh": "zsh/vendor-completions/_kymo",
        "fish": "fish/vendor_completions.d/kymo.fish",
    }.items():
        files[f"share/{path}"] = build.run(kymo, "completions", shell)
    pages = build.target / "man"
    shutil.rmtree(pages, ignore_errors=True)
    build.run(kymo, "man", "--output", pages)
    for page in pages.iterdir():
        files[f"share/man/man1/{page.name}.gz"] = gzip.compress(page.read_bytes(), mtime=0)
    return files


def tarball(build, machine, kymo, files):
    name = f"kymo-{build.version}-{machine}-linux"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted({"bin/kymo": kymo.read_bytes(), **files}.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime = len(content), build.epoch
            entry.mode = 0o755 if path.startswith("bin/") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    (build.out / f"{name}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def libc_wanted(library):
    """The newest version of the C library whose symbols a library uses."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    return ".".join(str(part) for part in max((int(major), int(minor)) for major, minor in versions))


def package(build, machine, kymo, libkymo, files):
    architecture, triplet = ARCHITECTURES[machine], f"{machine}-linux-gnu"
    root = build.out.parent / "deb"
    shutil.rmtree(root, ignore_errors=True)
    library = f"usr/lib/{triplet}"
    pc = (build.source / "include/kymo.pc.in").read_text().replace("@PREFIX@", "/usr").replace("@VERSION@", build.version)
    all_files = {f"usr/{path}": content for path, content in files.items() if "LICENSE-APACHE" not in path}
    all_files |= {
        "usr/bin/kymo": kymo.read_bytes(),
        f"{library}/libkymo.so.0": (libkymo / "libkymo.so").read_bytes(),
        f"{library}/libkymo.a": (libkymo / "libkymo.a").read_bytes(),
        f"{library}/pkgconfig/kymo.pc": pc.replace("${prefix}/lib", f"${{prefix}}/lib/{triplet}").encode(),
        "usr/share/doc/kymograph/copyright": COPYRIGHT.encode(),
        "usr/share/doc/kymograph/changelog.gz": gzip.compress((build.source / "CHANGELOG.md").read_bytes(), mtime=0),
    }
    for header in (build.source / "include/kymo").glob("*.h"):
        all_files[f"usr/include/kymo/{header.name}"] = header.read_bytes()
    size = sum(len(content) for content in all_files.values())
    control = {
        "Package": "kymograph",
        "Version": build.version,
        "Architecture": architecture,
        "Maintainer": "The Kymograph authors <kymograph@example.org>",
        "Section": "devel",
        "Priority": "optional",
        "Installed-Size": -(-size // 1024),
        "Depends": f"libc6 (>= {libc_wanted(libkymo / 'libkymo.so')})",
        "Description": DESCRIPTION,
    }
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in sorted(all_files.items()))
    all_files |= {
        "DEBIAN/control": "".join(f"{name}: {value}\n" for name, value in control.items()).encode(),
        "DEBIAN/md5sums": sums.encode(),
        "DEBIAN/shlibs": f"libkymo 0 kymograph (>= {build.version})\n".encode(),
        "DEBIAN/triggers": b"activate-noawait ldconfig\n",
    }
    for path, content in all_files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(0o755 if path == "usr/bin/kymo" else 0o644)
    (root / library / "libkymo.so").symlink_to("libkymo.so.0")
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (build.epoch, build.epoch), follow_symlinks=False)
    build.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, build.out / f"kymograph_{build.version}_{architecture}.deb")


def has_no_paths(path, content, folders):
    """Fails if a file names a folder of this machine."""
    for folder in folders:
        at = content.find(f"{folder}/".encode())
        if at >= 0:
            sys.exit(f"{path} has a path of this machine: {content[at : at + 120]}")


def make(folder, clone, wheels):
    """Builds all packages below a folder; returns the build."""
    build = Build(folder, clone)
    tell(f"packages of {build.version} ({build.commit}) in {build.out}")
    build.source.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(build.out, ignore_errors=True)
    build.out.mkdir()
    build.copy_source()
    build.run("scripts/web.sh", "build")
    machine = platform.machine()
    binaries, files, shared = {}, {}, None
    for its in sorted(MACHINES, key=lambda its: its != machine):
        if its != machine and shutil.which(f"{its}-linux-gnu-gcc") is None:
            tell(f"NOT BUILT: kymo for {its}, because there is no {its}-linux-gnu-gcc")
            continue
        tell(f"kymo for {its}")
        binaries[its] = build.kymo(its)
        its_licenses = build.licenses(its, ["kymo-cli", "kymo-libkymo"], "kymo-cli/default")
        # This machine's command comes first, and writes the pages of all.
        shared = shared or shared_files(build, binaries[machine])
        files[its] = {**shared, "share/doc/kymograph/LICENSE-THIRD-PARTY.txt": its_licenses.encode()}
        tarball(build, its, binaries[its], files[its])
    tell("libkymo")
    libkymo = build.libkymo(machine)
    if shutil.which("dpkg-deb"):
        package(build, machine, binaries[machine], libkymo, files[machine])
    else:
        tell("NOT BUILT: the Debian package, because there is no dpkg-deb")
    if wheels:
        python = build.run("scripts/setup.sh", "python", cwd=clone).decode().strip() + "/bin/python"
        for project, name, features in ((".", "kymograph", ""), ("python/sql", "kymograph-sql", "kymo-python/sql")):
            tell(f"the wheel {name}")
            # It is found beside the other files with licenses.
            beside = build.source / project / "LICENSE-THIRD-PARTY.txt"
            beside.write_text(build.licenses(machine, ["kymo-python"], features))
            build.wheel(machine, python, project)
            beside.unlink()
    folders = [pathlib.Path.home(), clone, folder]
    for path in [*binaries.values(), libkymo / "libkymo.so", libkymo / "libkymo.a"]:
        has_no_paths(path, path.read_bytes(), folders)
    for wheel in build.out.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                has_no_paths(wheel / name, packed.read(name), folders)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(build.out.iterdir())}
    (build.out / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    return build


def tell(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twice", action="store_true", help="build everything again in other folders, and compare")
    parser.add_argument("--without", choices=["wheels"], action="append", default=[], help="leave these out")
    arguments = parser.parse_args()
    target = subprocess.run(["python3", CLONE / "scripts/target.py"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    for machine in MACHINES:
        # Without rustup, the compiler has its own machine's library alone.
        if machine != platform.machine() and shutil.which("rustup"):
            subprocess.run(["rustup", "--quiet", "target", "add", f"{machine}-unknown-linux-gnu"], cwd=CLONE, check=True)
    folder, wheels = pathlib.Path(target) / "dist", "wheels" not in arguments.without
    first = make(folder, CLONE, wheels)
    if arguments.twice:
        again = folder.with_name("dist-again-in-another-place")
        shutil.rmtree(again, ignore_errors=True)
        os.environ["TZ"] = "Pacific/Auckland"
        time.tzset()
        os.umask(0o077)
        second = make(again, CLONE, wheels)
        one, two = ((build.out / "SHA256SUMS").read_text() for build in (first, second))
        if one != two:
            different = sorted(set(one.splitlines()) ^ set(two.splitlines()), key=lambda line: line.split()[-1])
            print("the second build differs from the first:\n" + "\n".join(different), file=sys.stderr)
            return 1
        shutil.rmtree(again)
        tell("a second build in another folder is equal, byte for byte")
    for path in sorted(first.out.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
