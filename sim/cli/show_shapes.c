/* orrery show shapes: the kernels of a job as a CSV of shapes, which orrery-calibrate --shapes
 * measures. A shape stands once, whatever its labels; kernels bound by memory are given as rows of
 * 4096 elements that move as many bytes. */
#include "sim/cli/show.h"

#include "sim/cli/run.h"
#include "sim/io/csv.h"

#include <math.h>

/* Elements of a row of kernels whose program knows bytes only. */
#define ROW_ELEMENTS 4096

static const char *const columns[] = {
    "kind",  "op",       "dtype",    "pass",   "m",    "n",       "k",     "batch", "sequence",
    "heads", "kv_heads", "head_dim", "causal", "rows", "columns", "bytes", NULL};

static bool is_product(const OrrKernel *k) {
    return k->kind == ORR_K_GEMM || k->kind == ORR_K_BATCHED_GEMM || k->kind == ORR_K_GROUPED_GEMM;
}

static bool is_measured(const OrrKernel *k) {
    bool is_half = k->dtype == ORR_BF16 || k->dtype == ORR_FP16;
    if (is_product(k))
        return k->m > 0 && k->n > 0 && k->k > 0 && k->dtype != ORR_FP4 && k->dtype != ORR_INT8 &&
               (k->dtype != ORR_FP8 || (k->m % 16 == 0 && k->n % 16 == 0 && k->k % 16 == 0));
    return k->kind != ORR_K_ATTENTION || is_half;
}

/* The type that streams through a kernel: products alone are in FP8 and TF32. */
static OrrDtype dtype_of(const OrrKernel *k) {
    if (is_product(k))
        return (OrrDtype)k->dtype;
    return k->dtype == ORR_TF32 ? ORR_FP32 : k->dtype == ORR_FP8 ? ORR_BF16 : (OrrDtype)k->dtype;
}

static char *shape_line(const OrrKernel *k) {
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(line);
    OrrCsvWriter w = {.out = out};
    bool is_attention = k->kind == ORR_K_ATTENTION;
    orr_csv_put(&w, orr_kernel_kind_name((OrrKernelKind)k->kind));
    orr_csv_put(&w, k->kind == ORR_K_COPY ? "d2d" : "");
    orr_csv_put(&w, orr_dtype_name(dtype_of(k)));
    orr_csv_put(&w, orr_kernel_pass_name((OrrKernelPass)k->pass));
    int64_t values[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (is_product(k)) {
        values[0] = k->m, values[1] = k->n, values[2] = k->k;
        values[3] = k->kind == ORR_K_GEMM ? 0 : k->batch;
    } else if (is_attention) {
        values[3] = k->batch, values[4] = k->m, values[5] = k->heads;
        values[6] = k->kv_heads, values[7] = k->k, values[8] = k->is_causal;
    } else if (k->kind == ORR_K_COPY) {
        values[11] = (int64_t)ceil((k->bytes_read + k->bytes_written) / 2);
    } else {
        double elements = (k->bytes_read + k->bytes_written) / 2 / orr_dtype_bytes(dtype_of(k));
        values[9] = (int64_t)ceil(elements / ROW_ELEMENTS);
        values[10] = ROW_ELEMENTS;
    }
    for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, values[i]);
        orr_csv_put(&w, values[i] ? text : "");
    }
    orr_csv_end_row(&w);
    return g_string_free(g_steal_pointer(&line), FALSE);
}

bool orr_cli_show_shapes(const OrrCli *cli, OrrOut *out, GError **error) {
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, orr_cli_argument(cli, 1), error);
    if (!run)
        return false;
    const OrrProgram *p = orr_step_program(run->run);
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, columns);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        g_autofree char *line = is_measured(&p->kernels[i]) ? shape_line(&p->kernels[i]) : NULL;
        if (line && g_hash_table_add(seen, g_strdup(line)))
            orr_out_puts(out, line);
    }
    return true;
}
