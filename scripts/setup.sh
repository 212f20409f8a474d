#!/usr/bin/env bash
# Makes sure that what a make target needs is installed: installs it when root on Debian or Ubuntu, names it otherwise.
#   setup.sh build        a Rust toolchain, a C linker, Python 3
set -euo pipefail

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v python3 >/dev/null || missing+=(python3)
if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
    else
        echo "Please install: ${missing[*]}" >&2
        exit 2
    fi
fi
if ! command -v cargo >/dev/null; then
    echo "Please install Rust 1.95 or newer (https://rustup.rs)" >&2
    exit 2
fi
