#!/usr/bin/env bash
# Records examples/traces/demo anew: builds the program, traces it with LTTng, keeps the trace.
# Needs lttng-tools, liblttng-ust-dev and gcc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../traces/demo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -Wall -I"$here" "$here/demo.c" -o "$work/demo" -llttng-ust -ldl -lpthread
export LTTNG_HOME=$work HOME=$work
lttng-sessiond --daemonize --no-kernel --quiet
lttng create demo --output="$work/session" >/dev/null
lttng enable-channel --userspace --subbuf-size=8K --num-subbuf=8 jobs >/dev/null
lttng enable-event --userspace --channel=jobs 'jobs:*' >/dev/null
lttng add-context --userspace --channel=jobs --type=vpid --type=vtid --type=procname >/dev/null
lttng start >/dev/null
"$work/demo"
lttng stop >/dev/null
lttng destroy >/dev/null
pkill -u "$(id -u)" lttng-sessiond || true
trace=$(dirname "$(find "$work/session" -name metadata | head -n 1)")
rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -r "$trace" "$out"
