/* Names of events as the PyTorch profiler writes them.
 *
 * NCCL 2.19 and later compile one device kernel a function and data type, named after the ring (or
 * tree) with protocol LL whatever protocol runs; sends, receives and all-to-all share SendRecv
 * (NCCL, src/device/generate.py). So the protocol that runs is in the arguments, not in the name.
 */
#include "traces/traces_priv.h"

#include <string.h>

#define NCCL_ARGUMENTS "(ncclDevKernelArgsStorage<4096ul>)"

static const char *const nccl_functions[ORR_N_COLLECTIVES] = {
    "AllReduce", "AllGather", "ReduceScatter", "SendRecv", "Broadcast", "Reduce", "SendRecv"};
static const char *const nccl_dtypes[ORR_N_DTYPES] = {"f32",    "f32", "bf16", "f16",
                                                      "f8e4m3", "u8",  "u8"};

const char *orr_trace__collective_name(OrrCollective kind) {
    static const char *const names[ORR_N_COLLECTIVES] = {
        "allreduce", "_allgather_base", "_reduce_scatter_base", "all_to_all", "broadcast", "reduce",
        "send"};
    return names[kind];
}

const char *orr_trace__dtype_name(OrrDtype dtype) {
    static const char *const names[ORR_N_DTYPES] = {"Float",         "Float", "BFloat16", "Half",
                                                    "Float8_e4m3fn", "Byte",  "Char"};
    return names[dtype];
}

const char *orr_trace__pass_name(const OrrSpan *span) {
    return span->pass < ORR_N_PASSES ? orr_pass_name((OrrPass)span->pass) : "step";
}

static void collective(const OrrColl *coll, OrrAlgo algo, char name[ORR_TRACE_NAME_MAX]) {
    const char *function = nccl_functions[coll->kind];
    bool reduces = coll->kind == ORR_ALL_REDUCE || coll->kind == ORR_REDUCE_SCATTER ||
                   coll->kind == ORR_REDUCE;
    if (coll->kind == ORR_ALL_TO_ALL || coll->kind == ORR_SEND_RECV)
        g_strlcpy(name, "ncclDevKernel_SendRecv" NCCL_ARGUMENTS, ORR_TRACE_NAME_MAX);
    else if (!reduces)
        g_snprintf(name, ORR_TRACE_NAME_MAX, "ncclDevKernel_%s_RING_LL" NCCL_ARGUMENTS, function);
    else
        g_snprintf(name, ORR_TRACE_NAME_MAX, "ncclDevKernel_%s_Sum_%s_%s_LL" NCCL_ARGUMENTS,
                   function, nccl_dtypes[coll->dtype], algo == ORR_ALGO_TREE ? "TREE" : "RING");
}

/* "gemm qkv wgrad"; the kind is left out where the label says it ("norm1 dgrad"). */
static void kernel(const OrrKernel *k, char name[ORR_TRACE_NAME_MAX]) {
    const char *kind = orr_kernel_kind_name((OrrKernelKind)k->kind);
    bool is_said = g_str_has_prefix(k->label, kind);
    const char *pass =
        k->pass == ORR_PASS_FORWARD ? "" : orr_kernel_pass_name((OrrKernelPass)k->pass);
    g_snprintf(name, ORR_TRACE_NAME_MAX, "%s%s%s%s%s", is_said ? "" : kind,
               !is_said && *k->label ? " " : "", k->label, *pass ? " " : "", pass);
}

void orr_trace__name(const OrrTraceContext *c, const OrrSpan *span, OrrAlgo algo,
                     char name[ORR_TRACE_NAME_MAX]) {
    switch ((OrrOpKind)span->op_kind) {
    case ORR_OP_KERNEL:
        kernel(&c->program->kernels[span->what], name);
        return;
    case ORR_OP_COLL:
        collective(&c->program->colls[span->what], algo, name);
        return;
    case ORR_OP_P2P:
        g_strlcpy(name, "ncclDevKernel_SendRecv" NCCL_ARGUMENTS, ORR_TRACE_NAME_MAX);
        return;
    case ORR_OP_HOST:
    case ORR_N_OP_KINDS:
        break;
    }
    g_strlcpy(name, "host", ORR_TRACE_NAME_MAX);
}

bool orr_trace__pass_add(OrrTracePass *pass, const OrrSpan *span, OrrTracePass *done) {
    if (span->stream != ORR_STREAM_COMPUTE)
        return false;
    bool is_same =
        pass->is_open && pass->first.call == span->call && pass->first.step == span->step;
    bool is_done = pass->is_open && !is_same;
    if (is_done)
        *done = *pass;
    if (!is_same)
        *pass = (OrrTracePass){.is_open = true, .first = *span};
    pass->end_ns = span->end_ns;
    return is_done;
}

uint32_t orr_trace__place(const OrrTraceView *view, uint32_t rank) {
    uint32_t low = 0, high = view->n_ranks;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (view->ranks[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < view->n_ranks && view->ranks[low] == rank ? low : ORR_NONE;
}
