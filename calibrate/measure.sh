#!/bin/sh
# One prepared run on a machine with a GPU, at most 8 minutes in all: builds the runner, measures
# within 6 minutes, and fits what was measured: machine.ini is the calibration, gpu.ini the GPU file.
# All goes to the folder given, default the current one; a second run goes on where the first stopped.
#   calibrate/measure.sh [FOLDER]
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-.}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
if [ -x "$top/build/orrery-calibrate" ] && [ -x "$top/build/orrery" ]; then
    program=$top/build/orrery-calibrate
    orrery=$top/build/orrery
else
    [ -x "$top/configure" ] || (cd "$top" && autoreconf -fi >"$build/autoreconf.log" 2>&1)
    # One architecture, the GPU's own: all of them would take a minute of the eight.
    (cd "$build" && "$top/configure" NVCCFLAGS="-O2 -arch=native" >configure.log &&
        make -j"$(nproc)" orrery-calibrate orrery >make.log 2>&1) || {
        tail -n 20 "$build/make.log"
        exit 4
    }
    program=$build/orrery-calibrate
    orrery=$build/orrery
fi
"$program" --version | tee "$folder/versions.txt"
# What fits see first: a bit of everything; then the same with an empty cache where it matters.
"$program" --minutes 4 -o "$folder/kernels.csv"
"$program" --minutes 1 --flush-l2 --only kernel --only copy -o "$folder/kernels-cold.csv"
"$program" --minutes 1 --full --only gemm --only attention -o "$folder/fine.csv"
wc -l "$folder"/*.csv
"$orrery" calibrate fit "$folder/kernels.csv" "$folder/kernels-cold.csv" "$folder/fine.csv" \
    -o "$folder/machine.ini" --files "$folder" 2>&1 | tee "$folder/fit.txt"
