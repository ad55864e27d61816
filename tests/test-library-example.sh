#!/bin/sh
# The example of doc/library.md compiles against the public header alone and runs.
set -eu
top=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/doc/library.md" >"$work/example.c"
cp "$top/sim/api/orrery.h" "$work/orrery.h"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$work" -c "$work/example.c" -o "$work/example.o"
san=$(sed -n 's/^SAN_CFLAGS = //p' Makefile) # a library with sanitizers wants them at the link too
# shellcheck disable=SC2086
./libtool --quiet --tag=CC --mode=link ${CC:-cc} $san -o "$work/example" \
    "$work/example.o" ./liborrery.la
ORRERY_DATA=$top "$work/example" >"$work/out"
grep -q ' ns a step on ' "$work/out"
grep -q '"schema": "orrery.step/1"' "$work/out"
