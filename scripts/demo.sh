#!/usr/bin/env bash
# Records a server under load, with the kernel's events where this user may record these, shows what can be asked of the trace, and ends in the
# viewer: in the browser, or with its address where there is no display, until Ctrl-C. Where nobody sits at a terminal, as in CI, the viewer says
# its address and is ended. Where nothing can be recorded, a trace that is shipped does.
#
#     demo.sh KYMO LIBKYMO      the command, and the folder with libkymo.so
set -euo pipefail
cd "$(dirname "$0")/.."
kymo=$1 libkymo=$2
say() { printf '\n$ %s\n' "$*"; }

# The viewer of a trace, as long as somebody wants it.
view() {
    say "kymo view $1"
    if [ -t 0 ] && [ -t 1 ] && [ -z "${CI:-}" ]; then
        "$kymo" view "$1"
        return
    fi
    local url viewer
    exec 3< <(exec "$kymo" view --no-browser "$1" 2>/dev/null)
    viewer=$!
    # Without pages it says why, and ends.
    if ! read -r url <&3; then
        "$kymo" view --no-browser "$1" || true
        return
    fi
    printf '%s\n' "$url"
    kill -INT "$viewer"
    exec 3<&-
    echo "There is no terminal to end it from: it has ended. In a terminal it stays until Ctrl-C, and opens the browser."
}

case "$(uname -s)-$(uname -m)" in
Linux-x86_64 | Linux-aarch64) ;;
*)
    "$kymo" examples/traces/demo
    say "kymo print examples/traces/demo | head -n 5"
    "$kymo" print examples/traces/demo | head -n 5
    view examples/traces/demo
    exit
    ;;
esac

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
say "cc -O2 examples/server/server.c -lkymo -lpthread -o server"
cc -O2 -Iinclude examples/server/server.c -L"$libkymo" -lkymo -lpthread -Wl,-rpath,"$libkymo" -o "$place/server"
ln -sf libkymo.so "$libkymo/libkymo.so.0"
cd "$place"
# A try tells whether the kernel can be recorded here, and why not.
kernel=()
if refused=$("$kymo" record --kernel=sched --output try -- true 2>&1); then
    kernel=(--kernel)
else
    printf '\nThe server is recorded without the events of the kernel:\n%s\n' "$refused"
fi
rm -rf try
say "kymo record ${kernel[*]+${kernel[*]} }--output trace -- ./server 2"
"$kymo" record ${kernel[@]+"${kernel[@]}"} --output trace -- ./server 2
say "kymo trace"
"$kymo" trace
say "kymo print trace | grep -m 1 -A 5 server:request_begin"
"$kymo" print trace | grep -m 1 -A 5 server:request_begin || true
say "kymo pairs --start server:request_begin --stop server:request_end --key id --limit 3 trace        how long requests took"
"$kymo" pairs --start server:request_begin --stop server:request_end --key id --limit 3 trace
if [ ${#kernel[@]} -gt 0 ]; then
    say "kymo syscalls --procname server --limit 5 trace        which system calls they made"
    "$kymo" syscalls --procname server --limit 5 trace
fi
view trace
