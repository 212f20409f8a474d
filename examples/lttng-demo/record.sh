#!/usr/bin/env bash
# Records examples/traces/demo anew: builds the program, traces it with LTTng, keeps the trace.
# Needs lttng-tools, liblttng-ust-dev and gcc. Uses a session daemon that runs already, else starts one and ends it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../traces/demo}
work=$(mktemp -d)
daemon=
finish() {
    [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon" || true; }
    rm -rf "$work"
}
trap finish EXIT
gcc -O2 -Wall -I"$here" "$here/demo.c" -o "$work/demo" -llttng-ust -ldl -lpthread
export LTTNG_HOME=$work HOME=$work
session=kymo-demo-$$
if ! lttng --no-sessiond list >/dev/null 2>&1; then
    lttng-sessiond --no-kernel --quiet &
    daemon=$!
    for _ in $(seq 50); do
        lttng --no-sessiond list >/dev/null 2>&1 && break
        sleep 0.1
    done
fi
lttng create "$session" --output="$work/session" >/dev/null
lttng enable-channel --userspace --subbuf-size=8K --num-subbuf=8 jobs >/dev/null
lttng enable-event --userspace --channel=jobs 'jobs:*' >/dev/null
lttng add-context --userspace --channel=jobs --type=vpid --type=vtid --type=procname >/dev/null
lttng start >/dev/null
"$work/demo"
lttng stop >/dev/null
lttng destroy "$session" >/dev/null
trace=$(dirname "$(find "$work/session" -name metadata | head -n 1)")
rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -r "$trace" "$out"
