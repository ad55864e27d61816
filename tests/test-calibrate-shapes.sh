#!/bin/sh
# What orrery show shapes writes of each shipped job, orrery-calibrate --shapes takes.
set -eu
[ -x "$top_builddir/orrery-calibrate" ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for job in tiny gpt3-175b-64 llama3-8b-8 mpt-125m-8; do
    "$top_builddir/orrery" show shapes "$job" >"$folder/shapes.csv"
    "$top_builddir/orrery-calibrate" --device fake --shapes "$folder/shapes.csv" \
        -o "$folder/$job.csv" 2>"$folder/says" || { cat "$folder/says"; exit 1; }
    [ "$(grep -c '^gemm,.*,ok,' "$folder/$job.csv")" -ge 9 ] || {
        echo "$job: too few products measured"
        exit 1
    }
    for kind in '\(attention\|batched_gemm\)' kernel; do
        grep -q "^$kind,.*,ok," "$folder/$job.csv" || { echo "$job: no $kind measured"; exit 1; }
    done
done
