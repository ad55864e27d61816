#!/bin/bash
# What detailed collectives and the solver cost on this machine: whole processes, processor time
# (the machine may be shared), medians; limits as bench/step.sh has them, scaled by the hold of a bare
# heap. Not part of make check.
# Usage, in the build folder: ../bench/net.sh [SCALE]; SCALE by default is measured.
set -eu
orrery=${ORRERY:-./orrery}
runs=${RUNS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scale=${1:-}
if [ -z "$scale" ]; then
    make -s bench_hold
    ./bench_hold >"$work/holds"
    scale=$(awk '$1 == "heap4" && $2 == 10000 {printf "%.3f", $3 / 50}' "$work/holds")
    echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors"
    awk '{printf "hold, %s, %d pending: %.1f ns\n", $1, $2, $3; v[$1 $2] = $3}
        END {printf "queue against bare heap at 10^6 pending: %.2f (limit 1.5)\n",
                 v["queue1000000"] / v["heap41000000"]}' "$work/holds"
    echo "limits are scaled by $scale"
fi

# seconds of processor time, flows, events, MiB
measure() {
    local stats
    TIMEFORMAT='%U %S'
    { time "$orrery" show collective "$@" --detailed --csv --stats >"$work/row" 2>"$work/said"; } \
        2>"$work/time"
    stats=$(sed -n 's/.*peak memory \([0-9.]*\) \([KMG]\)iB.*/\1 \2/p' "$work/said")
    tail -1 "$work/row" | awk -F, -v time="$(tail -1 "$work/time")" -v memory="$stats" '{
        split(time, t, " "); split(memory, m, " ")
        printf "%.3f %s %s %.1f\n", t[1] + t[2], $7, $9,
            m[1] * (m[2] == "G" ? 1024 : m[2] == "K" ? 1 / 1024 : 1)}'
}

row() { # NAME LIMIT_S LIMIT_MIB ARGUMENTS...
    local name=$1 limit=$2 memory=$3
    shift 3
    for ((k = 0; k < runs; k++)); do measure "$@"; done | sort -n | sed -n "$(((runs + 1) / 2))p" |
        awk -v name="$name" -v limit="$limit" -v scale="$scale" -v memory="$memory" '
            {printf "%-44s %9.3f s %9.3f s %9.1f MiB %9s %9d %9d  %s\n", name, $1, limit * scale,
                 $4, memory ? memory " MiB" : "-", $2, $3,
                 $1 <= limit * scale && (!memory || $4 <= memory) ? "within" : "OVER"}'
}

printf '\n%-44s %11s %11s %13s %13s %9s %9s\n' "detailed" "time" "limit" "memory" "limit" "flows" \
    "events"
row "all_to_all, 2,048 ranks" 10 0 all_to_all 1GiB -c h100-ib:2048
row "all_to_all, 2,048 ranks, ecmp-hash" 10 0 all_to_all 1GiB -c meta-24k-roce:2048 \
    --set cluster.routing=ecmp-hash
row "ring all_reduce, 1,024 ranks" 10 0 all_reduce 1GiB -c h100-ib:1024 NCCL_ALGO=Ring
row "the same, ecmp-hash, 4:1" 10 0 all_reduce 1GiB -c meta-24k-roce:1024 NCCL_ALGO=Ring \
    --set cluster.routing=ecmp-hash --set cluster.leaf_oversubscription=4
row "hierarchical all_reduce, 8 x 2,048 ranks" 20 2048 all_reduce 1GiB -c h100-ib:16384 \
    NCCL_ALGO=hierarchical

# Growth with ranks, with the exponent between each size and the one before.
grow() { # NAME SIZES... -- ARGUMENTS with @ for the size
    local name=$1 sizes=() size
    shift
    while [ "$1" != -- ]; do sizes+=("$1"); shift; done
    shift
    for size in "${sizes[@]}"; do
        echo "$size $(measure "${@//@/$size}")"
    done | awk -v name="$name" '{
        printf "%-34s %8d ranks %9.3f s %9.1f MiB %9d flows", name, $1, $2, $5, $3
        if (NR > 1 && $2 > 0 && time > 0)
            printf "  exponent of time %.2f, of memory %.2f", log($2 / time) / log($1 / size),
                log($5 / memory) / log($1 / size)
        print ""
        size = $1; time = $2; memory = $5}'
}
printf '\ngrowth\n'
grow "all_to_all" 256 512 1024 2048 -- all_to_all 1GiB -c h100-ib:@
grow "ring all_reduce, ecmp-hash, 4:1" 512 1024 2048 4096 -- all_reduce 1GiB -c meta-24k-roce:@ \
    NCCL_ALGO=Ring --set cluster.routing=ecmp-hash --set cluster.leaf_oversubscription=4

printf '\nsolver: random pairs on a tree of 16,384 hosts without oversubscription, paths by hash\n'
make -s bench_net
for flows in 1000 10000 30000 100000; do
    ./bench_net "$flows" $((flows >= 100000 ? 1000 : 20000)) | sed 's/^/  /'
done
printf '\nsolver: random pairs over the uplinks of two pods, rings of 500 links beside them\n'
for rings in 0 20 128; do
    ./bench_net 1000 10000 0 "$rings" | sed 's/^/  /'
done
