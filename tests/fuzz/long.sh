#!/bin/sh
# Mutates every corpus for FUZZ_SECONDS (15) with FUZZ_SEED (the day of the year), in the build folder.
set -u
failed=0
for corpus in "$top_srcdir"/tests/fuzz/corpus/*/; do
    target=./fuzz_$(basename "$corpus")
    if [ ! -x "$target" ]; then
        echo "$corpus has no $target"
        failed=1
        continue
    fi
    "$target" --seconds "${FUZZ_SECONDS:-15}" --seed "${FUZZ_SEED:-$(date +%j)}" || failed=1
done
exit $failed
