#!/bin/sh
# Mutates every corpus, FUZZ_INPUTS (a million) inputs each, each for FUZZ_SECONDS (120) at most,
# with FUZZ_SEED (the day of the year), FUZZ_JOBS (the cores) at a time, in the build folder. Prints
# what each reached.
set -u
export FUZZ_INPUTS="${FUZZ_INPUTS:-1000000}" FUZZ_SECONDS="${FUZZ_SECONDS:-120}"
export FUZZ_SEED="${FUZZ_SEED:-$(date +%j)}"
for corpus in "$top_srcdir"/tests/fuzz/corpus/*/; do
    [ -x "./fuzz_$(basename "$corpus")" ] || echo "$corpus has no fuzz_$(basename "$corpus")"
done | grep . && exit 1
for corpus in "$top_srcdir"/tests/fuzz/corpus/*/; do
    basename "$corpus"
done | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I NAME sh -c '
    ./fuzz_NAME --inputs $FUZZ_INPUTS --seconds $FUZZ_SECONDS --seed $FUZZ_SEED 2>&1'
