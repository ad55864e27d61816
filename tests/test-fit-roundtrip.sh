#!/bin/sh
# A synthetic machine's simulated log of nccl-tests, read and fitted: its parameters come back within
# 2 %, also where only a range of sizes is fitted, and sizes held out are met.
set -eu
orrery=$PWD/orrery
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >truth.ini <<END
[calibration]
source = a synthetic machine
[collectives]
hopper.ring.ll.launch_ns = 6800 ns
hopper.ring.ll.step_ns = 1150 ns
hopper.ring.simple.launch_ns = 17000 ns
hopper.ring.simple.step_ns = 2000 ns
hopper.ring.simple.eff_frac = 0.7
hopper.nvls.launch_ns = 14000 ns
hopper.nvls.eff_frac = 0.8
hopper.pairs.launch_ns = 9100 ns
hopper.pairs.eff_frac = 0.6
ib.step_ns.ll = 4400 ns
ib.step_ns.simple = 9000 ns
ib.launch_ns = 6000 ns
ib.eff_frac = 0.8
END
for op in all_reduce all_gather all_to_all; do
    for n in 2 4 8 16 32; do
        "$orrery" show collective $op 8B..2GiB -c h100-ib:$n --log --calibration ./truth.ini \
            >$op-$n.log
    done
done
# @1: fitted file, @2: tolerance in per cent.
compare() {
    awk -v most="$2" -F' *= *| ns| #' '
        FNR == NR && /_ns|_frac/ { truth[$1] = $2 }
        FNR != NR && $1 in truth {
            n++
            off = 100 * ($2 / truth[$1] - 1)
            if (off > most || off < -most) { print $1 ": " $2 ", not " truth[$1]; bad = 1 }
        }
        END { if (n < 12) { print n " parameters came back, not 12"; bad = 1 } exit bad }
    ' truth.ini "$1"
}
"$orrery" calibrate fit ./*.log -c h100-ib:32 -o fit.ini 2>says
compare fit.ini 2
"$orrery" calibrate fit ./*.log -c h100-ib:32 -o part.ini --sizes 1kB..256MiB 2>says
grep 'held out' says | awk '{ for (i = 1; i < NF; i++) if ($i == "error") exit !($(i + 1) < 3) }'
status=0
"$orrery" calibrate fit all_reduce-2.log -c h100-ib:16 --sizes 4GiB..1MiB 2>says || status=$?
test $status = 2
status=0
"$orrery" calibrate fit all_reduce-2.log -c h100-ib:16 --sizes 4GiB..8GiB >out 2>says || status=$?
test $status = 3
grep -q 'within the sizes' says
status=0
"$orrery" show collective all_reduce 1MiB -c h100-ib:8 --log --json 2>says || status=$?
test $status = 2
