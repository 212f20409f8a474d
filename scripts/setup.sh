#!/usr/bin/env bash
# Makes sure that what a make target needs is installed: installs it when root on Debian or Ubuntu, names it otherwise.
#   setup.sh build        a Rust toolchain, a C linker, Python 3
#   setup.sh python       a virtual environment for this clone's wheel with what python/requirements.txt pins; prints where
#   setup.sh api          one with what scripts/requirements-api.txt pins
#   setup.sh oracles      babeltrace2's library for Python, which analyses are compared with; without it they are not
#   setup.sh web          Node 20.19 or newer with npm, which build the pages of `kymo view`
#   setup.sh browser      Chromium, in which those pages are tested; without it they are not
#   setup.sh packages     a linker for the other machine, what makes a minimal system to try packages in, and an emulator
#   setup.sh peers        both babeltraces, LTTng, and what builds C and C++, which tests of recording run beside; without it they say so
set -euo pipefail
# A command that fails inside of `$( )` fails the whole.
shopt -s inherit_errexit

cd "$(dirname "$0")/.."

# Installs packages; fails where that is not possible.
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
}

build() {
    local missing=()
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    command -v python3 >/dev/null || missing+=(python3)
    if [ "${#missing[@]}" -gt 0 ] && ! install "${missing[@]}"; then
        echo "Please install: ${missing[*]}" >&2
        exit 2
    fi
    if ! command -v cargo >/dev/null; then
        echo "Please install Rust 1.95 or newer (https://rustup.rs)" >&2
        exit 2
    fi
}

# Clones share what is pinned; the wheel of this clone is installed beside its target folder's other contents.
python() {
    local shared venv; shared="$(environment python python/requirements.txt)"; venv="$(python3 scripts/target.py)/python-venv"
    if [ "$(cat "$venv/shared" 2>/dev/null)" != "$shared" ]; then
        rm -rf "$venv"
        "$shared/bin/python" -m venv --without-pip "$venv" >&2
        (cd "$shared" && echo "$PWD"/lib/python*/site-packages) >"$(echo "$venv"/lib/python*/site-packages)/shared.pth"
        ln -s "$shared/bin/maturin" "$venv/bin/maturin"
        echo "$shared" >"$venv/shared"
    fi
    echo "$venv"
}

api() { environment api scripts/requirements-api.txt; }

# Prints the folder of an environment, which clones share, with what a file pins; says on standard error what cannot be had.
environment() {
    local wants="$2" base venv
    venv="$(python3 scripts/target.py tools)/$1-$(sha256sum "$2" | cut -c 1-8)"
    for base in python3 python3.12 python3.11 python3.13; do
        "$base" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
    done
    if ! "$base" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        install python3 python3-venv >&2 || { echo "Please install Python 3.11 or newer with venv" >&2; exit 2; }
        base=python3
    fi
    if ! cmp -s "$wants" "$venv/requirements.txt"; then
        rm -rf "$venv"
        "$base" -m venv "$venv" >&2
        "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wants" >&2
        cp "$wants" "$venv/requirements.txt"
    fi
    echo "$venv"
}

oracles() {
    for python in python3 /usr/bin/python3; do
        if "$python" -c "import bt2" 2>/dev/null; then
            return
        fi
    done
    install python3-bt2 >/dev/null 2>&1 || echo "PEER ABSENT: python3-bt2 is not installed and cannot be" >&2
}

# Node is new enough, and npm is there.
has_node() {
    command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}

# Where the system's Node is too old, as Debian 12's is, npm gets a newer one, which scripts/web.sh finds.
web() {
    local tools; tools="$(python3 scripts/target.py tools)"
    PATH="$tools/node/bin:$PATH"
    has_node && return
    command -v npm >/dev/null || install nodejs npm >/dev/null 2>&1 || true
    has_node && return
    local machine; machine="$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')"
    if npm install --prefix "$tools/node" --ignore-scripts --no-audit --no-fund --silent "node-$machine@22" >/dev/null 2>&1; then
        ln -sfn "node_modules/node-$machine/bin" "$tools/node/bin"
        hash -r
    fi
    if ! has_node; then
        echo "Please install Node 20.19 or newer with npm (https://nodejs.org); found $(node --version 2>/dev/null || echo none)" >&2
        exit 2
    fi
}

browser() {
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null && return
    done
    install chromium >/dev/null 2>&1 || echo "BROWSER ABSENT: chromium is not installed and cannot be" >&2
}

packages() {
    local missing=()
    local machine=aarch64 compiler=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    [ "$(uname -m)" != aarch64 ] || { machine=x86_64; compiler=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross); }
    command -v "$machine-linux-gnu-gcc" >/dev/null || missing+=("${compiler[@]}")
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    command -v "qemu-$machine" >/dev/null || command -v "qemu-$machine-static" >/dev/null || missing+=(qemu-user)
    [ "${#missing[@]}" -eq 0 ] || install "${missing[@]}" >/dev/null 2>&1 ||
        echo "NOT INSTALLED, and cannot be: ${missing[*]}" >&2
}

# What tests of recording run beside: Babeltrace, and what builds programs in C and C++. Those without it say so.
peers() {
    local missing=()
    command -v babeltrace2 >/dev/null || missing+=(babeltrace2)
    command -v babeltrace >/dev/null || missing+=(babeltrace)
    command -v g++ >/dev/null || missing+=(g++)
    command -v make >/dev/null || missing+=(make)
    command -v pkg-config >/dev/null || missing+=(pkg-config)
    command -v cmake >/dev/null || missing+=(cmake)
    command -v meson >/dev/null || missing+=(meson)
    command -v lttng-sessiond >/dev/null || missing+=(lttng-tools)
    echo '#include <lttng/tracef.h>' | cc -fsyntax-only -xc - 2>/dev/null || missing+=(liblttng-ust-dev)
    [ "${#missing[@]}" -eq 0 ] || install "${missing[@]}" >/dev/null 2>&1 ||
        echo "PEER ABSENT: not installed, and cannot be: ${missing[*]}" >&2
}

"$1"
