/* Inside traces: the exporters, names of events, passes put together from spans. */
#ifndef TRACES_TRACES_PRIV_H
#define TRACES_TRACES_PRIV_H

#include "traces/exporter.h"

extern const OrrExporter orr_trace__chrome;
extern const OrrExporter orr_trace__csv;
extern const OrrExporter orr_trace__passes;
extern const OrrExporter orr_trace__chakra;

#define ORR_TRACE_NAME_MAX 160
/* The name of the event as the PyTorch profiler shows it: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL
 * (ncclDevKernelArgsStorage<4096ul>)", or for our kernels their kind and label. */
void orr_trace__name(const OrrTraceContext *c, const OrrSpan *span, OrrAlgo algo,
                     char name[ORR_TRACE_NAME_MAX]);
/* "allreduce", "_allgather_base", ... as torch.distributed records collectives. */
const char *orr_trace__collective_name(OrrCollective kind);
/* "BFloat16", ... as PyTorch names scalar types. */
const char *orr_trace__dtype_name(OrrDtype dtype);
/* "F", "B", "I", "W", or "step" for step begin and end. */
const char *orr_trace__pass_name(const OrrSpan *span);

/* A call of the role (a pass of the pipeline) on the compute stream: its kernels lie between. */
typedef struct {
    bool is_open;
    OrrSpan first; /* the span that began it */
    int64_t end_ns;
} OrrTracePass;
/* Takes the next span of a rank; true if a pass is complete, which is then in *@done. */
bool orr_trace__pass_add(OrrTracePass *pass, const OrrSpan *span, OrrTracePass *done);

/* Place of @rank in the view; ORR_NONE if it is not in it. */
uint32_t orr_trace__place(const OrrTraceView *view, uint32_t rank);

/* Busy time and FLOPs of a rank over time, in bins that widen as the run goes on. */
#define ORR_TRACE_BINS 256
typedef struct {
    int64_t width_ns;
    uint32_t n; /* bins in use */
    double compute_ns[ORR_TRACE_BINS], comm_ns[ORR_TRACE_BINS], flops[ORR_TRACE_BINS];
} OrrTraceBins;
void orr_trace__bins_init(OrrTraceBins *bins);
void orr_trace__bins_add(OrrTraceBins *bins, const OrrSpan *span, double flops);

#endif
