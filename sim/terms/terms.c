#include "sim/terms/terms.h"

#include <stddef.h>

#define TABLE(type, function, table, count, ...)                                                   \
    const char *const table[] = {__VA_ARGS__, NULL};                                               \
    _Static_assert(sizeof(table) / sizeof(table[0]) == (count) + 1, #table " lacks a name");       \
    const char *function(type value) {                                                             \
        return table[value];                                                                       \
    }

TABLE(OrrDtype, orr_dtype_name, orr_dtype_names, ORR_N_DTYPES, "fp32", "tf32", "bf16", "fp16",
      "fp8", "fp4", "int8")
TABLE(OrrKernelKind, orr_kernel_kind_name, orr_kernel_kind_names, ORR_N_KERNEL_KINDS, "gemm",
      "grouped_gemm", "attention", "batched_gemm", "softmax", "norm", "rotary", "activation",
      "residual", "dropout", "embedding", "cross_entropy", "router", "permute", "cast", "copy",
      "gradient", "optimizer")
TABLE(OrrCollective, orr_collective_name, orr_collective_names, ORR_N_COLLECTIVES, "all_reduce",
      "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv")
TABLE(OrrAlgo, orr_algo_name, orr_algo_names, ORR_N_ALGOS, "ring", "tree", "nvls", "nvls_tree",
      "collnet_direct", "collnet_chain", "direct", "hierarchical", "pairwise", "naive")
TABLE(OrrProto, orr_proto_name, orr_proto_names, ORR_N_PROTOS, "ll", "ll128", "simple")
TABLE(OrrCommKind, orr_comm_kind_name, orr_comm_kind_names, ORR_N_COMM_KINDS, "tp", "sp", "cp",
      "ep", "pp", "dp_gradient", "dp_parameter", "embedding", "step_end")
TABLE(OrrMemKind, orr_mem_kind_name, orr_mem_kind_names, ORR_N_MEM_KINDS, "weights", "gradients",
      "optimizer", "activations", "logits", "comm_buffers", "allocator", "context")
TABLE(OrrStream, orr_stream_name, orr_stream_names, ORR_N_STREAMS, "host", "compute", "tp", "dp",
      "dp_parameter", "pp_send", "pp_recv", "pp_send_back", "pp_recv_back", "cp", "ep", "copy")
TABLE(OrrGroup, orr_group_name, orr_group_names, ORR_N_GROUPS, "tp", "cp", "ep", "dp", "pp",
      "dp_cp", "edp", "embedding", "model", "hsdp_shard", "hsdp_replica", "world")

static const char *const kernel_passes[] = {"forward", "dgrad", "wgrad"};
static const char *const passes[] = {"F", "B", "I", "W"};
static const char *const idle_owners[] = {"interference",
                                          "bubble",
                                          "exposed_tp",
                                          "exposed_sp",
                                          "exposed_cp",
                                          "exposed_ep",
                                          "exposed_pp",
                                          "exposed_dp_gradient",
                                          "exposed_dp_parameter",
                                          "exposed_embedding",
                                          "exposed_step_end",
                                          "straggler",
                                          "host",
                                          "data",
                                          "step_end"};
_Static_assert(sizeof(idle_owners) / sizeof(idle_owners[0]) == ORR_N_OWNERS - ORR_N_KERNEL_KINDS,
               "an owner lacks a name");

const char *orr_kernel_pass_name(OrrKernelPass p) {
    return kernel_passes[p];
}

const char *orr_pass_name(OrrPass p) {
    return passes[p];
}

const char *orr_owner_name(OrrOwner o) {
    if ((int)o < ORR_N_KERNEL_KINDS)
        return orr_kernel_kind_names[o];
    return idle_owners[o - ORR_N_KERNEL_KINDS];
}

double orr_dtype_bytes(OrrDtype d) {
    static const double bytes[] = {4, 4, 2, 2, 1, 0.5, 1};
    return bytes[d];
}
