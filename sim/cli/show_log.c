/* The layout of nccl-tests from 2.17 on (src/common.cu, NVIDIA/nccl-tests): lines that name the
 * test, its ranks, then out-of-place and in-place columns; times of four digits. */
#include "sim/cli/show_log.h"

#include "config.h"
#include "sim/collective/collective.h"

/* Programs of nccl-tests; @is_shared: count is that of one rank's part, of which size has n. */
static const struct {
    const char *program, *redop;
    int root;
    bool is_shared;
} tests[ORR_N_COLLECTIVES] = {
    [ORR_ALL_REDUCE] = {"all_reduce_perf", "sum", -1, false},
    [ORR_ALL_GATHER] = {"all_gather_perf", "none", -1, true},
    [ORR_REDUCE_SCATTER] = {"reduce_scatter_perf", "sum", -1, true},
    [ORR_ALL_TO_ALL] = {"alltoall_perf", "none", -1, true},
    [ORR_BROADCAST] = {"broadcast_perf", "none", 0, false},
    [ORR_REDUCE] = {"reduce_perf", "sum", 0, false},
    [ORR_SEND_RECV] = {"sendrecv_perf", "sum", -1, false},
};

static const char *type_name(OrrDtype dtype) {
    static const char *const names[ORR_N_DTYPES] = {
        [ORR_FP32] = "float", [ORR_TF32] = "float", [ORR_BF16] = "bfloat16",
        [ORR_FP16] = "half",  [ORR_FP8] = "f8e4m3", [ORR_INT8] = "int8"};
    return names[dtype];
}

static void write_head(const OrrShowLog *log, OrrOut *out) {
    const OrrClusterSpec *s = orr_cluster_spec(log->cluster);
    orr_out_printf(out, "# Collective test starting: %s\n", tests[log->kind].program);
    orr_out_printf(out, "# Not measured: what Orrery %s says of the idle machine\n#\n",
                   PACKAGE_VERSION);
    orr_out_puts(out, "# Using devices\n");
    for (uint32_t r = 0; r < log->n_ranks; r++)
        orr_out_printf(out, "#  Rank %2u Group  0 Pid %6u on node%04u device %2u [0x00] %s\n", r,
                       r + 1, orr_node_of_gpu(s, r), r % s->node->gpus, s->node->gpu->name);
    if (log->version)
        orr_out_printf(out, "NCCL version %u.%u.%u\n", log->version / 10000,
                       log->version / 100 % 100, log->version % 100);
    orr_out_puts(out, "#\n#                                                              "
                      "out-of-place                       in-place          \n"
                      "#       size         count      type   redop    root     time   algbw   "
                      "busbw  #wrong     time   algbw   busbw  #wrong \n"
                      "#        (B)    (elements)                               (us)  (GB/s)  "
                      "(GB/s)             (us)  (GB/s)  (GB/s)         \n");
}

static void write_call(const OrrCollRow *row, OrrOut *out) {
    double us = (double)row->time_ns / 1e3;
    char time[32], algbw[32], busbw[32];
    g_ascii_formatd(time, sizeof time, us >= 1e4 ? "%.0f" : us >= 100 ? "%.1f" : "%.2f", us);
    g_ascii_formatd(algbw, sizeof algbw, "%.2f", row->algbw_bytes_per_s / 1e9);
    g_ascii_formatd(busbw, sizeof busbw, "%.2f", row->busbw_bytes_per_s / 1e9);
    orr_out_printf(out, "  %7s %7s %7s       0", time, algbw, busbw);
}

bool orr_cli_write_log(const OrrShowLog *log, OrrOut *out, GError **error) {
    if (!type_name(log->dtype))
        return orr_fail_usage(error,
                              "orrery show collective: nccl-tests has no type %s; fp32, "
                              "bf16, fp16, fp8 or int8 would do",
                              orr_dtype_name(log->dtype));
    double element = orr_dtype_bytes(log->dtype), sum = 0;
    write_head(log, out);
    for (uint32_t i = 0; i < log->n_rows; i++) {
        const OrrCollRow *row = &log->rows[i];
        double parts = tests[log->kind].is_shared ? log->n_ranks : 1;
        orr_out_printf(out, "%12" G_GINT64_FORMAT "  %12" G_GINT64_FORMAT "  %8s  %6s  %6d",
                       row->bytes, (int64_t)((double)row->bytes / element / parts),
                       type_name(log->dtype), tests[log->kind].redop, tests[log->kind].root);
        write_call(row, out);
        write_call(row, out);
        orr_out_puts(out, "\n");
        sum += row->busbw_bytes_per_s / 1e9;
    }
    char mean[32];
    g_ascii_formatd(mean, sizeof mean, "%.3f", sum / MAX(1, log->n_rows));
    orr_out_printf(out,
                   "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %s\n#\n"
                   "# Collective test concluded: %s\n#\n",
                   mean, tests[log->kind].program);
    return true;
}
