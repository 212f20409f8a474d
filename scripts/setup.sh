#!/usr/bin/env bash
# Makes sure that what a make target needs is installed: installs it when root on Debian or Ubuntu, names it otherwise.
#   setup.sh build        a Rust toolchain, a C linker, Python 3
#   setup.sh oracles      babeltrace2's library for Python, which analyses are compared with; without it they are not
set -euo pipefail

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

oracles() {
    for python in python3 /usr/bin/python3; do
        if "$python" -c "import bt2" 2>/dev/null; then
            return
        fi
    done
    install python3-bt2 >/dev/null 2>&1 || echo "PEER ABSENT: python3-bt2 is not installed and cannot be" >&2
}

"$1"
