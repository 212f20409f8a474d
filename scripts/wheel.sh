#!/usr/bin/env bash
# Builds a wheel and installs it in the environment that scripts/setup.sh makes; prints the environment's folder.
#   wheel.sh PROFILE      ci: what everything else of a test run is built with; release: what is handed out
#   wheel.sh PROFILE sql  the wheel kymograph-sql, which goes beside the other
set -euo pipefail
# A command that fails inside of `$( )` fails the whole.
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
CARGO_TARGET_DIR="$(python3 scripts/target.py)"
export CARGO_TARGET_DIR
venv="$(scripts/setup.sh python)"
case "${2:-}" in
    "") package=kymograph project=. ;;
    sql) package=kymograph_sql project=python/sql ;;
    *) echo "wheel.sh: there is no wheel '$2'" >&2; exit 2 ;;
esac
wheels="$CARGO_TARGET_DIR/wheels/$1"
rm -rf "$wheels/$package"-*.whl
# Both libraries have one name, so that cargo would take the one for the other that was built last.
rm -f "$CARGO_TARGET_DIR/$1/deps/lib_native.so" "$CARGO_TARGET_DIR/$1/lib_native.so"
# The interpreter is named, so that nothing is built again because another one is found first.
(cd "$project" && "$venv/bin/maturin" build --quiet --profile "$1" --interpreter "$venv/bin/python" --out "$wheels" >&2)
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-index)
# A library with SQL takes the place of the other, and may be of older source.
[ "$package" = kymograph_sql ] || "$venv/bin/python" -m pip uninstall --quiet --yes kymograph-sql >&2
"${install[@]}" "$wheels/$package"-*.whl >&2
echo "$venv"
