#!/bin/sh
# Builds the old program again, from the history of this repository: the revision before programs had memory for triggers.
set -eu
cd "$(dirname "$0")"
here=$(pwd)
old=$(mktemp -d)
git worktree add --quiet --detach "$old" 9fcd367d
(cd "$old" && CARGO_TARGET_DIR="$old/target" cargo build --quiet --profile libkymo --package kymo-libkymo)
cc -O2 -s -I "$old/include" "$here/program.c" -o "$old/program" "$old/target/libkymo/libkymo.a" -lpthread -ldl
gzip -9 -n < "$old/program" > "$here/program-$(uname -m).gz"
git worktree remove --force "$old"
