#!/bin/bash
# What simulated steps cost on this machine, against limits that hold where a
# bare 4-ary heap of 16-byte entries takes 50 ns a hold at 10^4 pending; they are scaled by that
# figure, measured in the same run. A time is that of the whole process for one simulated step:
# start-up and one of its steps. Not part of make check.
# Usage, in the build folder: ../bench/step.sh [all]; without "all" only what takes seconds.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
orrery=${ORRERY:-./orrery}
runs=${RUNS:-3}
hold=$(mktemp)
trap 'rm -f "$hold"' EXIT

make -s bench_hold
./bench_hold >"$hold"
scale=$(awk '$1 == "heap4" && $2 == 10000 {printf "%.3f", $3 / 50}' "$hold")
echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors"
awk '{printf "hold, %s, %d pending: %.1f ns\n", $1, $2, $3; v[$1 $2] = $3}
    END {printf "queue against bare heap at 10^6 pending: %.2f (limit 1.5)\n",
             v["queue1000000"] / v["heap41000000"]}' "$hold"
echo "limits are scaled by $scale"

# "2.08 s" and its kin on --stats lines: seconds, MiB, steps, executed ranks
measure() {
    "$orrery" step "$@" --stats 2>&1 >/dev/null | awk '
        function seconds(v, u) { return v * (u ~ /^ns/ ? 1e-9 : u ~ /^us/ ? 1e-6 : u ~ /^ms/ ? 1e-3 : 1) }
        function mib(v, u) { return v * (u ~ /^GiB/ ? 1024 : u ~ /^KiB/ ? 1 / 1024 : 1) }
        /loaded and lowered in/ {
            for (i = 1; i < NF; i++) {
                if ($i == "lowered") prepare = seconds($(i + 2), $(i + 3))
                if ($i == "executed") steps = $(i + 1)
                if ($i ~ /^\(/) { v = $i; sub(/\(/, "", v); step = seconds(v, $(i + 1)) }
                if ($i == "memory") memory = mib($(i + 1), $(i + 2))
            }
        }
        / executed ranks / {
            for (i = 2; i < NF; i++) if ($i == "executed" && $(i + 1) == "ranks") ranks = $(i - 1)
            printf "%.4f %.1f %d %d\n", prepare + step, memory, steps, ranks
        }'
}

median() { # of the first column over $runs runs, with what stands beside it
    for ((k = 0; k < runs; k++)); do measure "$@"; done | sort -n | sed -n "$(((runs + 1) / 2))p"
}

row() { # NAME LIMIT_S LIMIT_MIB OPTIONS...
    local name=$1 limit=$2 memory=$3
    shift 3
    median "$@" | awk -v name="$name" -v limit="$limit" -v scale="$scale" -v memory="$memory" '
        {printf "%-44s %9.3f s %9.3f s %9.1f MiB %9s %6d  %s\n", name, $1, limit * scale, $2,
             memory ? memory " MiB" : "-", $3,
             $1 <= limit * scale && (!memory || $2 <= memory) ? "within" : "OVER"}'
}

drawn=(--perturb 'gpu:*:speed~normal(1,0.01)')
hashed=(--set network.placement=random --set network.routing=ecmp-hash
    --set cluster.leaf_oversubscription=4)
printf '\n%-44s %11s %11s %13s %13s %6s\n' "job" "time" "limit" "memory" "limit" "steps"
row "llama3-405b-16k folded" 0.05 64 llama3-405b-16k
row "llama3-405b-131k folded" 0.1 0 llama3-405b-131k
if [ "${1:-}" = all ]; then
    row "llama3-405b-1m folded" 1 1024 llama3-405b-1m
    row "llama3-405b-16k --unfold" 2 600 llama3-405b-16k --unfold
    row "llama3-405b-16k, speeds drawn" 3 0 llama3-405b-16k "${drawn[@]}"
    row "llama3-405b-16k, 4:1, random, ecmp-hash" 10 0 llama3-405b-16k "${hashed[@]}"
    row "llama3-405b-131k --unfold" 20 5120 llama3-405b-131k --unfold
fi

# Seeds together over one seed, on a non-blocking cluster.
now() { echo "${EPOCHREALTIME/./}"; }
begin=$(now)
"$orrery" step llama3-8b-128 "${drawn[@]}" >/dev/null
one=$(($(now) - begin))
begin=$(now)
"$orrery" step llama3-8b-128 "${drawn[@]}" --seeds 64 >/dev/null
many=$(($(now) - begin))
awk -v one="$one" -v many="$many" 'BEGIN {
    printf "%-44s %9.1f times one seed (limit 12)\n", "llama3-8b-128, speeds drawn, 64 seeds", many / one}'

# Growth: time and memory against one size at a time, with the exponent of a straight line in
# logarithms, and that between the two largest, where start-up counts least.
fit() { # NAME; lines: size and what median says
    awk -v name="$1" '
        {printf "%-34s %8d %9.4f s %9.1f MiB %8d ranks executed\n", name, $1, $2, $3, $5
         last_x = x; last_y = y; last_z = z
         x = log($1); y = log($2); z = log($3); n++
         sx += x; sy += y; sz += z; sxx += x * x; sxy += x * y; sxz += x * z}
        END {d = n * sxx - sx * sx
             printf "%-34s exponent of time %.2f (%.2f at the end), of memory %.2f (%.2f)\n", name,
                 (n * sxy - sx * sy) / d, (y - last_y) / (x - last_x),
                 (n * sxz - sx * sz) / d, (z - last_z) / (x - last_x)}'
}

grow() { # NAME SIZES... -- OPTIONS with @ for the size
    local name=$1 sizes=() size
    shift
    while [ "$1" != -- ]; do sizes+=("$1"); shift; done
    shift
    for size in "${sizes[@]}"; do
        echo "$size $(median "${@//@/$size}")"
    done | fit "$name"
}

printf '\ngrowth\n'
# Folded cost against data-parallel ranks: stages that fill whole pods of 3,072 GPUs, and stages
# that straddle them (then as many positions as there are thirds of pods in a stage differ).
grow_large() { # NAME DP...
    local name=$1 dp
    shift
    for dp in "$@"; do
        echo "$dp $(median llama3-405b-1m --set "layout.dp=$dp" \
            --set "batch.global=$((16 * dp)) sequences" \
            --set "job.cluster=clos-roce-1m:$((128 * dp))")"
    done | fit "$name"
}
grow_large "405b folded, DP, whole pods" 384 768 1536 3072 6144
[ "${1:-}" = all ] && grow_large "405b folded, DP, split pods" 128 512 2048 8192
tiny=(tiny-pipeline --set model.hidden=1024 --set model.head_dim=128 --set layout.vpp=1
    --set schedule.name=1f1b --set "batch.micro=1 sequence")
four=(--set layout.tp=2 --set layout.pp=2 --set layout.dp=1 --set "job.cluster=fat_tree:4 node:4 gpu:h100")
grow_mode() { # NAME OPTIONS...
    echo "mode: $1"
    shift
    grow "data-parallel ranks" 64 256 1024 4096 16384 -- "${tiny[@]}" --set layout.tp=1 \
        --set layout.pp=1 --set layout.sequence_parallel=no --set layout.dp=@ \
        --set "batch.global=@ sequences" --set "job.cluster=fat_tree:@ node:8 gpu:h100" "$@"
    grow "micro-batches" 16 64 256 1024 -- "${tiny[@]}" "${four[@]}" \
        --set "batch.global=@ sequences" "$@"
    grow "layers" 16 64 256 1024 -- "${tiny[@]}" "${four[@]}" --set model.layers=@ \
        --set "batch.global=16 sequences" "$@"
}
grow_mode folded
grow_mode --unfold --unfold
grow_mode "speeds drawn" "${drawn[@]}"

# Detailed collectives and the solver.
"$top/bench/net.sh" "$scale"
