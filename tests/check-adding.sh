#!/bin/sh
# The worked examples of doc/adding.md, as they stand there: each fenced block that begins with a file
# name becomes that file in a data folder of its own, and the example job must run on them.
set -eu
top=${top_srcdir:-$(dirname "$0")/..}
orrery=${top_builddir:-.}/orrery
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

awk -v data="$data" '
    /^```/ { in_block = !in_block; file = ""; next }
    in_block && file == "" {
        if ($1 != "#" || $2 !~ /\//) { in_block = 2; file = "none"; next }
        file = data "/" $2
        folder = file
        sub(/\/[^\/]*$/, "", folder)
        system("mkdir -p " folder)
        files++
        next
    }
    in_block == 1 && file != "" { print > file }
    END { exit files < 6 }' "$top/doc/adding.md"

ORRERY_DATA=$data
export ORRERY_DATA
$orrery show cluster example-cluster >"$data/out"
grep -q example-gpu "$data/out"
$orrery show collective all_reduce 1GiB --cluster example-cluster:64 >"$data/out"
grep -q busbw "$data/out"
$orrery step example-job --json >"$data/out"
grep -q '"world_size": 64' "$data/out"
grep -q '"total": 2795573248' "$data/out"
$orrery run example-run --seeds 5 --json >"$data/out"
grep -q '"wall_ns": 604800000000000' "$data/out"
echo "the examples of doc/adding.md run"
