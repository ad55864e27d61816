#!/bin/sh
# orrery-calibrate as four processes on the fake device: one file, the rows of one run, resumed.
set -eu
program=$top_builddir/orrery-calibrate
[ -x "$program" ] && command -v mpirun >/dev/null || exit 77
"$program" --version | grep -q 'MPI yes' || exit 77
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
launch() {
    mpirun --oversubscribe -np 4 "$program" --mpi --device fake -o "$folder/records.csv" 2>"$folder/says"
}
launch || { cat "$folder/says"; exit 1; }
rows=$(grep -c ',ok,' "$folder/records.csv")
[ "$rows" -gt 100 ] || { echo "only $rows rows"; exit 1; }
grep -v ',ok,' "$folder/records.csv" | sed 1d | grep . && { echo "rows that are not ok"; exit 1; }
[ "$(cut -d, -f17,19,20,21,22 "$folder/records.csv" | sort | uniq | wc -l)" -gt 20 ]
# A cut row and the ones before it: the next launch measures what is missing, and no more.
head -n 50 "$folder/records.csv" >"$folder/part"
head -c -20 "$folder/part" >"$folder/records.csv"
launch || { cat "$folder/says"; exit 1; }
[ "$(grep -c ',ok,' "$folder/records.csv")" -eq "$rows" ]
grep -q '48 recorded before' "$folder/says"
echo "$rows rows by four processes, resumed"
