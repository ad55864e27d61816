#!/bin/sh
# A Monte Carlo that is killed at any moment goes on and ends with the same bytes; a full disk is told,
# and nothing is lost.
set -eu
orrery=${top_builddir:-.}/orrery
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run="$orrery run bloom-176b-saves --seeds 4000"
$run --threads 1 --json -o "$out/whole.json"

kills=0
for delay in 0.02 0.03 0.05 0.08 0.12 0.2; do
    $run --resume "$out/store" --json -o "$out/part.json" 2>"$out/err" &
    pid=$!
    sleep $delay
    kill -9 $pid 2>/dev/null && kills=$((kills + 1))
    wait $pid 2>/dev/null || true
done
[ "$kills" -gt 0 ] || { echo "nothing was killed in time"; exit 1; }
$run --resume "$out/store" --json -o "$out/part.json"
cmp "$out/whole.json" "$out/part.json"
$run --resume "$out/store" --json | cmp "$out/whole.json" -

# a full disk: the limit of a file's size stands for it
( trap '' XFSZ; ulimit -f 64; $run --resume "$out/small" --json -o "$out/small.json" ) \
    2>"$out/err" && { echo "a full disk was not told"; exit 1; }
grep -q "cannot write" "$out/err"
[ ! -e "$out/small.json" ]
$run --resume "$out/small" --json | cmp "$out/whole.json" -

# the store of other inputs is refused
status=0
$orrery run bloom-176b-saves --seeds 2 --set run.length=9d --resume "$out/store" 2>"$out/err" >/dev/null ||
    status=$?
[ "$status" -eq 3 ] && grep -q "other inputs" "$out/err"
status=0
$orrery run bloom-176b-saves --seeds 2 --resume /no/such/folder/x 2>"$out/err" >/dev/null || status=$?
[ "$status" -eq 4 ]
echo "killed $kills times, the same bytes"
