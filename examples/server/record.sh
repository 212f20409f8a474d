#!/usr/bin/env bash
# Records examples/traces/server.tar.gz anew, the sample of `kymo view`: the first tenth of a second of the server under load.
#
#     record.sh KYMO LIBKYMO      the command, and the folder with libkymo.so
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kymo=$(realpath "$1") libkymo=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -I"$here/../../include" "$here/server.c" -L"$libkymo" -lkymo -lpthread -Wl,-rpath,"$libkymo" -o "$work/server"
ln -sf libkymo.so "$libkymo/libkymo.so.0"
cd "$work"
"$kymo" record --output whole -- ./server 1
mkdir part
first=$("$kymo" print --limit 1 --clock-seconds whole | sed 's/^\[\([0-9.]*\)\].*/\1/')
"$kymo" cut --end "$(awk -v first="$first" 'BEGIN { printf "%.9f", first + 0.1 }')" --output part/server whole
# On which machine that was is nobody's business.
sed -i -e 's/hostname = ".*"/hostname = "example"/' -e 's/kernel_release = ".*"/kernel_release = "6.18.0"/' \
    -e 's/kernel_version = ".*"/kernel_version = "#1 SMP"/' -e 's|binary_path = ".*"|binary_path = "/usr/local/bin/server"|' part/server/metadata
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --exclude='.*' --directory part server | gzip -9n >"$here/../traces/server.tar.gz"
"$kymo" "$here/../traces/server.tar.gz"
