#!/usr/bin/env bash
# Records a server under load, and shows what can be asked of the trace. Where nothing can be recorded, a trace that is shipped does.
#
#     demo.sh KYMO LIBKYMO      the command, and the folder with libkymo.so
set -euo pipefail
cd "$(dirname "$0")/.."
kymo=$1 libkymo=$2
say() { printf '\n$ %s\n' "$*"; }

case "$(uname -s)-$(uname -m)" in
Linux-x86_64 | Linux-aarch64) ;;
*)
    "$kymo" examples/traces/demo
    say "kymo print examples/traces/demo | head -n 5"
    "$kymo" print examples/traces/demo | head -n 5
    exit
    ;;
esac

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
say "cc -O2 examples/server/server.c -lkymo -lpthread -o server"
cc -O2 -Iinclude examples/server/server.c -L"$libkymo" -lkymo -lpthread -Wl,-rpath,"$libkymo" -o "$place/server"
ln -sf libkymo.so "$libkymo/libkymo.so.0"
say "kymo record --output trace -- ./server 2"
(cd "$place" && "$kymo" record --output trace -- ./server 2)
cd "$place"
say "kymo trace"
"$kymo" trace
say "kymo print trace | head -n 5"
"$kymo" print trace | head -n 5 || true
say "kymo pairs --start server:request_begin --stop server:request_end --key id --limit 3 trace        how long requests took"
"$kymo" pairs --start server:request_begin --stop server:request_end --key id --limit 3 trace
