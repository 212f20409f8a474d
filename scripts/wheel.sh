#!/usr/bin/env bash
# Builds the wheel and installs it in the environment that scripts/setup.sh makes; prints the environment's folder.
#   wheel.sh PROFILE      ci: what everything else of a test run is built with; release: what is handed out
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/kymograph/target}"
venv="$(scripts/setup.sh python)"
wheels="$CARGO_TARGET_DIR/wheels/$1"
rm -rf "$wheels"
# The interpreter is named, so that nothing is built again because another one is found first.
"$venv/bin/maturin" build --quiet --profile "$1" --interpreter "$venv/bin/python" --out "$wheels" >&2
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-index "$wheels"/*.whl >&2
echo "$venv"
