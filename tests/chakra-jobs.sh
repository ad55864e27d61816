#!/bin/bash
# S48: a replay of our own export of any shipped job gives its step time, to the nanosecond. Jobs of
# more than 20,000 GPUs are left to the others of their kind.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number() { grep -m1 "\"$1\"" | tr -dc 0-9; }
failed=0 n=0
for job in $(./orrery list jobs --json 2>/dev/null | sed -n 's/.*"name": "\([^"]*\)".*/\1/p'); do
    ./orrery step "$job" --json >"$folder/step.json" 2>/dev/null || [ $? = 1 ] || continue
    step=$(number step_time_ns <"$folder/step.json")
    gpus=1
    for size in tp pp cp dp; do
        gpus=$((gpus * $(number $size <"$folder/step.json")))
    done
    [ "$gpus" -le 20000 ] || continue
    for rank in $(printf '%s\n' 0 $((gpus / 3)) $((gpus - 1)) | sort -nu); do
        ./orrery trace "$job" -f chakra --ranks "$rank" -o "$folder/x.et" 2>/dev/null
        replayed=$(./orrery step "$folder/x.et" --json | number step_time_ns)
        n=$((n + 1))
        if [ "$replayed" != "$step" ]; then
            echo "$job, rank $rank: the step takes $step ns, its replay $replayed"
            failed=1
        fi
    done
done
echo "$n ranks replayed"
[ "$n" -gt 40 ] && exit $failed
