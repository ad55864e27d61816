#!/bin/sh
# Mutates every corpus, FUZZ_INPUTS (a million) inputs each, each for FUZZ_SECONDS (120) at most,
# with FUZZ_SEED (the day of the year), FUZZ_JOBS (the cores) at a time, in the build folder; then,
# where the sample files are, for a fifth of the time with these in the corpus. Prints what each
# reached.
set -u
export FUZZ_INPUTS="${FUZZ_INPUTS:-1000000}" FUZZ_SECONDS="${FUZZ_SECONDS:-120}"
export FUZZ_SEED="${FUZZ_SEED:-$(date +%j)}" FUZZ_SAMPLES="${ORRERY_SHARED:-$top_srcdir/../shared}"
for corpus in "$top_srcdir"/tests/fuzz/corpus/*/; do
    [ -x "./fuzz_$(basename "$corpus")" ] || echo "$corpus has no fuzz_$(basename "$corpus")"
done | grep . && exit 1

# TARGET FOLDER...: of the samples
samples='nccl_tests files/nccl-tests-logs
check files/nccl-tests-logs
run_log files/megatron-logs files/torchtitan-logs
compare files/megatron-logs files/torchtitan-logs
import_topology files/nccl-topo-xml files/hwloc-xml files/ibnetdiscover files/nvidia-smi-topo
import_config files/train-configs
import_hf files/hf-configs
import_failures files/failure-traces
kineto files/kineto-traces
chakra files/chakra-et
published published
json files/hf-configs'

failed=0
for corpus in "$top_srcdir"/tests/fuzz/corpus/*/; do
    basename "$corpus"
done | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I NAME sh -c '
    ./fuzz_NAME --inputs $FUZZ_INPUTS --seconds $FUZZ_SECONDS --seed $FUZZ_SEED 2>&1' || failed=1
[ -d "$FUZZ_SAMPLES/files" ] || exit $failed
echo "with the sample files:"
FUZZ_SHARE=$((FUZZ_SECONDS >= 5 ? FUZZ_SECONDS / 5 : 1)) # 0 would be no limit
export FUZZ_SHARE
echo "$samples" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I LINE sh -c '
    set -- LINE
    target=$1 more=
    shift
    for folder; do more="$more --more $FUZZ_SAMPLES/$folder"; done
    ./fuzz_$target $more --inputs $FUZZ_INPUTS --seconds $FUZZ_SHARE \
        --seed $FUZZ_SEED 2>&1' || failed=1
exit $failed
