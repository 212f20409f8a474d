#!/usr/bin/env bash
# Builds the pages of `kymo view`, and tests them. What npm installs is shared by clones.
#   web.sh build          web/dist; quick where nothing has changed
#   web.sh test           types, and tests that need no browser
#   web.sh browser [FILE] tests with a browser, without which they say so; with the command that KYMO names, also of that
#   web.sh modules        only what npm installs
set -euo pipefail
cd "$(dirname "$0")/../web"
tools="$(python3 ../scripts/target.py tools)"
# Where scripts/setup.sh had to fetch Node.
PATH="$tools/node/bin:$PATH"

# Everything that the lock file names, in a folder of its own, and a link to it here.
modules() {
    local folder; folder="$tools/web-modules/$(cat package.json package-lock.json | sha256sum | cut -c 1-16)"
    if [ ! -e "$folder/node_modules" ]; then
        local making; making="$(mkdir -p "$tools/web-modules" && mktemp -d "$tools/web-modules/making.XXXXXX")"
        cp package.json package-lock.json "$making"
        # No package runs anything while it is installed.
        (cd "$making" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2)
        # Somebody else may have been quicker.
        mv --no-target-directory "$making" "$folder" 2>/dev/null || rm -rf "$making"
    fi
    if [ "$(readlink node_modules || true)" != "$folder/node_modules" ]; then
        rm -rf node_modules
        ln -s "$folder/node_modules" node_modules
    fi
}

# What the pages are made of, as one number.
sources() {
    find package.json package-lock.json tsconfig.json vite.config.ts index.html src -type f ! -name '*.test.ts' -print0 | LC_ALL=C sort -z |
        xargs -0 sha256sum | sha256sum | cut -c 1-64
}

build() {
    local now; now="$(sources)"
    if [ -e dist/index.html ] && [ "$(cat .built 2>/dev/null)" = "$now" ]; then
        return
    fi
    modules
    rm -f .built
    npm run --silent build -- --logLevel warn
    echo "$now" >.built
}

case "${1:-}" in
modules) modules ;;
build) build ;;
test)
    modules
    build
    npm run --silent check
    npm run --silent test
    ;;
browser)
    modules
    build
    npm run --silent browser -- "${@:2}"
    ;;
*)
    sed -n '2,6s/^# *//p' "../scripts/$(basename "$0")" >&2
    exit 2
    ;;
esac
