/* Counters over time: a span adds to the bins that it covers; when time runs past the last bin, all
 * bins become twice as wide, so that memory stays the same for any length of run. */
#include "traces/traces_priv.h"

#include <string.h>

#define FIRST_WIDTH_NS 100000 /* 0.1 ms: finer than a micro-batch, coarser than a kernel; ours */

void orr_trace__bins_init(OrrTraceBins *b) {
    memset(b, 0, sizeof *b);
    b->width_ns = FIRST_WIDTH_NS;
}

static void halve(double *values) {
    for (int i = 0; i < ORR_TRACE_BINS / 2; i++)
        values[i] = values[2 * i] + values[2 * i + 1];
    memset(values + ORR_TRACE_BINS / 2, 0, ORR_TRACE_BINS / 2 * sizeof *values);
}

void orr_trace__bins_add(OrrTraceBins *b, const OrrSpan *span, double flops) {
    if (span->end_ns <= span->start_ns || span->start_ns < 0 || span->op_kind == ORR_OP_HOST)
        return;
    while (span->end_ns > b->width_ns * ORR_TRACE_BINS) {
        halve(b->compute_ns), halve(b->comm_ns), halve(b->flops);
        b->width_ns *= 2;
        b->n = (b->n + 1) / 2;
    }
    double length = (double)(span->end_ns - span->start_ns);
    double *busy = span->op_kind == ORR_OP_KERNEL ? b->compute_ns : b->comm_ns;
    for (int64_t at = span->start_ns; at < span->end_ns;) {
        int64_t i = at / b->width_ns, next = MIN(span->end_ns, (i + 1) * b->width_ns);
        busy[i] += (double)(next - at);
        b->flops[i] += flops * (double)(next - at) / length;
        b->n = MAX(b->n, (uint32_t)i + 1);
        at = next;
    }
}
