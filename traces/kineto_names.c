/* Names of kernels in profiles. */
#include "traces/kineto_names.h"

#include <string.h>

/* The first row whose word is in the name counts: narrow words stand before wide ones.
 * Names as in traces of PyTorch 1.13 to 2.8 on V100 to H800 and MI250. */
static const struct {
    const char *word;
    OrrKernelKind kind;
} words[] = {
    {"grouped_gemm::cuda::utils::transpose", ORR_K_COPY},
    {"batched_transpose", ORR_K_COPY},
    {"cast_and_transpose", ORR_K_CAST},
    {"cast_to_fp8", ORR_K_CAST},
    {"cast_back", ORR_K_CAST},
    {"swiglu", ORR_K_ACTIVATION},
    {"grouped_gemm", ORR_K_GROUPED_GEMM},
    {"m_grouped", ORR_K_GROUPED_GEMM},
    {"multi_tensor_apply", ORR_K_OPTIMIZER},
    {"adam", ORR_K_OPTIMIZER},
    {"flash", ORR_K_ATTENTION},
    {"fmha", ORR_K_ATTENTION},
    {"attention", ORR_K_ATTENTION},
    {"attn", ORR_K_ATTENTION},
    {"cross_entropy", ORR_K_CROSS_ENTROPY},
    {"nll_loss", ORR_K_CROSS_ENTROPY},
    {"LogSoftMax", ORR_K_CROSS_ENTROPY},
    {"softmax", ORR_K_SOFTMAX},
    {"SoftMax", ORR_K_SOFTMAX},
    {"layer_norm", ORR_K_NORM},
    {"LayerNorm", ORR_K_NORM},
    {"rms_norm", ORR_K_NORM},
    {"RMSNorm", ORR_K_NORM},
    {"rotary", ORR_K_ROTARY},
    {"Gelu", ORR_K_ACTIVATION},
    {"gelu", ORR_K_ACTIVATION},
    {"silu", ORR_K_ACTIVATION},
    {"dropout", ORR_K_DROPOUT},
    {"embedding", ORR_K_EMBEDDING},
    {"indexSelect", ORR_K_EMBEDDING},
    {"topk", ORR_K_ROUTER},
    {"TopK", ORR_K_ROUTER},
    {"permute", ORR_K_PERMUTE},
    {"expand_to_fused", ORR_K_PERMUTE},
    {"reduce_fused", ORR_K_PERMUTE},
    {"gemm", ORR_K_GEMM},
    {"Cijk_", ORR_K_GEMM}, /* Tensile, rocBLAS */
    {"nvjet", ORR_K_GEMM}, /* cuBLAS since 12.8 */
    {"cutlass", ORR_K_GEMM},
    {"cublas", ORR_K_GEMM},
    {"copy", ORR_K_COPY},
    {"Copy", ORR_K_COPY},
    {"transpose", ORR_K_COPY},
    {"FillFunctor", ORR_K_COPY},
};

/* Names that our own export gives: the kind, or a label that begins with it ("norm1 dgrad"). */
static OrrKernelKind own_kind(const char *name) {
    for (int k = 0; k < ORR_N_KERNEL_KINDS; k++) {
        const char *kind = orr_kernel_kind_name((OrrKernelKind)k);
        gsize n = strlen(kind);
        if (strncmp(name, kind, n) == 0 && !g_ascii_isalpha(name[n]))
            return (OrrKernelKind)k;
    }
    return ORR_N_KERNEL_KINDS;
}

OrrKernelKind orr_traces__kernel_kind(const char *name) {
    OrrKernelKind own = own_kind(name);
    if (own != ORR_N_KERNEL_KINDS)
        return own;
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(name, words[i].word))
            return words[i].kind;
    return ORR_N_KERNEL_KINDS;
}

bool orr_traces__is_transfer(const char *name) {
    static const char *const marks[] = {
        "nccl", "Nccl", "rccl", "::ep::internode::", "::ep::intranode::", "deep_ep::", "nvshmem"};
    for (gsize i = 0; i < G_N_ELEMENTS(marks); i++)
        if (strstr(name, marks[i]))
            return true;
    return false;
}

bool orr_traces__transfer_kind(const char *name, OrrCollective *kind) {
    /* by the name of NCCL's kernel or of PyTorch's collective */
    static const struct {
        const char *word;
        OrrCollective kind;
    } kinds[] = {{"reducescatter", ORR_REDUCE_SCATTER},
                 {"allreduce", ORR_ALL_REDUCE},
                 {"allgather", ORR_ALL_GATHER},
                 {"alltoall", ORR_ALL_TO_ALL},
                 {"all_to_all", ORR_ALL_TO_ALL},
                 {"broadcast", ORR_BROADCAST},
                 {"sendrecv", ORR_SEND_RECV},
                 {"send", ORR_SEND_RECV},
                 {"recv", ORR_SEND_RECV},
                 {"::dispatch", ORR_ALL_TO_ALL},
                 {"::combine", ORR_ALL_TO_ALL},
                 {"reduce", ORR_REDUCE}};
    g_autofree char *low = g_ascii_strdown(name, -1);
    char *to = low;
    for (const char *c = low; *c; c++) /* "reduce_scatter", "_allgather_base" */
        if (*c != '_' || strstr(low, "all_to_all"))
            *to++ = *c;
    *to = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strstr(low, kinds[i].word)) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

bool orr_traces__dtype(const char *name, OrrDtype *dtype, double *bytes) {
    /* c10::toString(ScalarType) */
    static const struct {
        const char *name;
        OrrDtype dtype;
        double bytes;
    } types[] = {{"Float", ORR_FP32, 4},      {"BFloat16", ORR_BF16, 2},
                 {"Half", ORR_FP16, 2},       {"Byte", ORR_INT8, 1},
                 {"Char", ORR_INT8, 1},       {"Float8_e4m3fn", ORR_FP8, 1},
                 {"Float8_e5m2", ORR_FP8, 1}, {"Double", ORR_N_DTYPES, 8},
                 {"Long", ORR_N_DTYPES, 8},   {"Int", ORR_N_DTYPES, 4}};
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++)
        if (g_ascii_strcasecmp(types[i].name, name) == 0) {
            *dtype = types[i].dtype;
            *bytes = types[i].bytes;
            return true;
        }
    return false;
}
