/* Names, columns, work and sanity of cases. Formulas of the bus bandwidth: nccl-tests,
 * doc/PERFORMANCE.md. */
#include "calibrate/case.h"

#include "sim/base/words.h"

#include <stddef.h>
#include <string.h>

const char *const orr_case_kind_names[] = {
    "gemm",   "batched_gemm", "grouped_gemm", "attention",  "unfused_attention",
    "kernel", "copy",         "launch",       "collective", NULL,
};
const char *const orr_ranks_shape_names[] = {"world", "node", "rail", "stride", NULL};

static const char *const kernel_names[] = {
    "layer_norm", "rms_norm",      "rotary", "swiglu", "gelu",    "residual_dropout",
    "softmax",    "cross_entropy", "adam",   "cast",   "permute", NULL,
};
static const char *const copy_names[] = {"d2d", "h2d", "d2h", "p2p", NULL};
static const char *const launch_names[] = {"latency", "rate", "graph", NULL};
_Static_assert(G_N_ELEMENTS(orr_case_kind_names) == ORR_N_CASE_KINDS + 1, "a name a kind");
_Static_assert(G_N_ELEMENTS(kernel_names) == ORR_N_MEM_KERNELS + 1, "a name a kernel");
_Static_assert(G_N_ELEMENTS(orr_ranks_shape_names) == ORR_N_RANKS_SHAPES + 1, "a name a shape");

const char *const *orr_case_op_names(OrrCaseKind kind) {
    static const char *const *const ops[ORR_N_CASE_KINDS] = {
        [ORR_CASE_KERNEL] = kernel_names,
        [ORR_CASE_COPY] = copy_names,
        [ORR_CASE_LAUNCH] = launch_names,
        [ORR_CASE_COLLECTIVE] = orr_collective_names,
    };
    return ops[kind];
}

const char *orr_case_op_name(const OrrCase *c) {
    const char *const *names = orr_case_op_names(c->kind);
    return names ? names[c->op] : "";
}

static int index_of(const char *const *names, const char *name) {
    for (int i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int orr_case_op(OrrCaseKind kind, const char *name) {
    return index_of(orr_case_op_names(kind), name);
}

static const char *const pass_names[] = {"forward", "dgrad", "wgrad", NULL};

enum { COLUMN_KIND, COLUMN_OP, COLUMN_DTYPE, COLUMN_PASS, COLUMN_RANKS, N_WORDS };

const char *const orr_case_columns[] = {
    "kind",  "op",       "dtype",      "pass",     "ranks",    "m",       "n",          "k",
    "batch", "sequence", "heads",      "kv_heads", "head_dim", "causal",  "rows",       "columns",
    "bytes", "in_place", "group_gpus", "stride",   "n_groups", "compute", "l2_flushed", NULL,
};
_Static_assert(G_N_ELEMENTS(orr_case_columns) == ORR_N_CASE_COLUMNS + 1, "a column a field");

/* Fields of the columns behind the words. */
static const size_t offsets[] = {
    offsetof(OrrCase, m),           offsetof(OrrCase, n),           offsetof(OrrCase, k),
    offsetof(OrrCase, batch),       offsetof(OrrCase, sequence),    offsetof(OrrCase, heads),
    offsetof(OrrCase, kv_heads),    offsetof(OrrCase, head_dim),    offsetof(OrrCase, is_causal),
    offsetof(OrrCase, rows),        offsetof(OrrCase, columns),     offsetof(OrrCase, bytes),
    offsetof(OrrCase, is_in_place), offsetof(OrrCase, group_gpus),  offsetof(OrrCase, stride),
    offsetof(OrrCase, n_groups),    offsetof(OrrCase, has_compute), offsetof(OrrCase, flushes_l2),
};
_Static_assert(G_N_ELEMENTS(offsets) == ORR_N_CASE_COLUMNS - N_WORDS, "a field a column");

static int64_t *field(OrrCase *c, guint i) {
    return (int64_t *)((char *)c + offsets[i - N_WORDS]);
}

char *orr_case_cell(const OrrCase *c, guint i) {
    switch (i) {
    case COLUMN_KIND:
        return g_strdup(orr_case_kind_names[c->kind]);
    case COLUMN_OP:
        return g_strdup(orr_case_op_name(c));
    case COLUMN_DTYPE:
        return g_strdup(
            c->kind == ORR_CASE_LAUNCH || c->kind == ORR_CASE_COPY ? "" : orr_dtype_name(c->dtype));
    case COLUMN_PASS:
        return g_strdup(c->kind <= ORR_CASE_KERNEL ? pass_names[c->pass] : "");
    case COLUMN_RANKS:
        return g_strdup(c->kind == ORR_CASE_COLLECTIVE ? orr_ranks_shape_names[c->ranks] : "");
    }
    int64_t value = *field((OrrCase *)c, i);
    return value ? g_strdup_printf("%" G_GINT64_FORMAT, value) : g_strdup("");
}

char *orr_case_key(const OrrCase *c) {
    GString *key = g_string_new(NULL);
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++) {
        g_autofree char *cell = orr_case_cell(c, i);
        g_string_append_printf(key, "%s%s", i ? "," : "", cell);
    }
    return g_string_free(key, FALSE);
}

static bool read_word(const char *const *names, const char *text, int *value, GError **error) {
    *value = index_of(names, text);
    if (*value >= 0)
        return true;
    g_autofree char *hint = orr_words_hint(text, names);
    return orr_fail_input(error, "'%s' is not known; %s", text, hint);
}

bool orr_case_read(OrrCase *c, guint i, const char *text, GError **error) {
    int value = 0;
    if (i < N_WORDS) {
        const char *const *names[N_WORDS] = {orr_case_kind_names, orr_case_op_names(c->kind),
                                             orr_dtype_names, pass_names, orr_ranks_shape_names};
        if (!*text && i != COLUMN_KIND)
            return true;
        if (!names[i])
            return orr_fail_input(error, "%s has no op", orr_case_kind_names[c->kind]);
        if (!read_word(names[i], text, &value, error))
            return false;
        switch (i) {
        case COLUMN_KIND:
            c->kind = (OrrCaseKind)value;
            break;
        case COLUMN_OP:
            c->op = value;
            break;
        case COLUMN_DTYPE:
            c->dtype = (OrrDtype)value;
            break;
        case COLUMN_PASS:
            c->pass = (OrrKernelPass)value;
            break;
        case COLUMN_RANKS:
            c->ranks = (OrrRanksShape)value;
            break;
        }
        return true;
    }
    gint64 number = 0;
    if (*text && !g_ascii_string_to_signed(text, 10, 0, (gint64)1 << 46, &number, NULL))
        return orr_fail_input(error, "'%s': a whole number from 0 to 2^46 would do", text);
    *field(c, i) = number;
    return true;
}

static const char *need_sizes(const OrrCase *c) {
    switch (c->kind) {
    case ORR_CASE_GEMM:
        return c->m && c->n && c->k ? NULL : "m, n and k";
    case ORR_CASE_BATCHED_GEMM:
    case ORR_CASE_GROUPED_GEMM:
        return c->m && c->n && c->k && c->batch ? NULL : "m, n, k and batch";
    case ORR_CASE_ATTENTION:
    case ORR_CASE_UNFUSED_ATTENTION:
        return c->batch && c->sequence && c->heads && c->kv_heads && c->head_dim
                   ? NULL
                   : "batch, sequence, heads, kv_heads and head_dim";
    case ORR_CASE_KERNEL:
        return c->rows && c->columns ? NULL : "rows and columns";
    case ORR_CASE_COPY:
        return c->bytes ? NULL : "bytes";
    case ORR_CASE_LAUNCH:
        return NULL;
    case ORR_CASE_COLLECTIVE:
        return c->bytes && c->group_gpus && c->stride && c->n_groups
                   ? NULL
                   : "bytes, group_gpus, stride and n_groups";
    case ORR_N_CASE_KINDS:
        break;
    }
    return "a kind";
}

/* Whether an element of @dtype can be what the kind works on. */
static bool has_dtype(const OrrCase *c) {
    switch (c->dtype) {
    case ORR_BF16:
    case ORR_FP16:
        return true;
    case ORR_FP32:
        return c->kind != ORR_CASE_ATTENTION;
    case ORR_TF32:
        return c->kind <= ORR_CASE_GROUPED_GEMM;
    case ORR_FP8:
        return c->kind <= ORR_CASE_GROUPED_GEMM;
    case ORR_FP4:
    case ORR_INT8:
    case ORR_N_DTYPES:
        return false;
    }
    return false;
}

char *orr_case_flaw(const OrrCase *c) {
    const char *missing = need_sizes(c);
    if (missing)
        return g_strdup_printf("%s needs %s", orr_case_kind_names[c->kind], missing);
    if (c->kind != ORR_CASE_LAUNCH && c->kind != ORR_CASE_COPY && !has_dtype(c))
        return g_strdup_printf("%s is not measured in %s", orr_case_kind_names[c->kind],
                               orr_dtype_name(c->dtype));
    if (c->dtype == ORR_FP8 && c->kind <= ORR_CASE_GROUPED_GEMM &&
        (c->m % 16 || c->n % 16 || c->k % 16))
        return g_strdup("FP8 products need m, n and k in multiples of 16");
    if (c->kv_heads && c->heads % c->kv_heads)
        return g_strdup("heads is no multiple of kv_heads");
    if (c->kind == ORR_CASE_KERNEL && c->columns % 8)
        return g_strdup("the kernels need columns in multiples of 8");
    if (c->kind == ORR_CASE_COLLECTIVE && c->group_gpus < 2)
        return g_strdup("a collective needs 2 GPUs or more");
    return NULL;
}

static double attention_flops(const OrrCase *c) {
    /* Two products of 2 s s d a head forward, five backward (one of them computed again): Dao 2023,
     * FlashAttention-2, section 4.1. */
    double products = c->pass == ORR_PASS_FORWARD ? 2 : 5;
    double all = products * 2.0 * (double)c->batch * (double)c->heads * (double)c->sequence *
                 (double)c->sequence * (double)c->head_dim;
    return c->is_causal && c->kind == ORR_CASE_ATTENTION ? all / 2 : all;
}

double orr_case_flops(const OrrCase *c) {
    double product = 2.0 * (double)c->m * (double)c->n * (double)c->k;
    switch (c->kind) {
    case ORR_CASE_GEMM:
        return product;
    case ORR_CASE_BATCHED_GEMM:
    case ORR_CASE_GROUPED_GEMM:
        return product * (double)c->batch;
    case ORR_CASE_ATTENTION:
    case ORR_CASE_UNFUSED_ATTENTION:
        return attention_flops(c);
    case ORR_CASE_KERNEL:
    case ORR_CASE_COPY:
    case ORR_CASE_LAUNCH:
    case ORR_CASE_COLLECTIVE:
    case ORR_N_CASE_KINDS:
        break;
    }
    return 0;
}

/* Elements of dtype and of FP32 that a kernel moves for each element of rows x columns. */
static double kernel_bytes(const OrrCase *c) {
    double e = orr_dtype_bytes(c->dtype), f = 4, x = (double)c->rows * (double)c->columns;
    bool is_back = c->pass != ORR_PASS_FORWARD;
    switch ((OrrMemKernel)c->op) {
    case ORR_MEM_LAYER_NORM:
    case ORR_MEM_RMS_NORM:
        return x * e * (is_back ? 3 : 2); /* input, output; also the gradient */
    case ORR_MEM_ROTARY:
    case ORR_MEM_GELU:
    case ORR_MEM_SOFTMAX:
    case ORR_MEM_PERMUTE:
        return x * e * (is_back && c->op == ORR_MEM_GELU ? 3 : 2);
    case ORR_MEM_SWIGLU:
        return x * e * (is_back ? 5 : 3); /* two inputs, one output; gradients of each */
    case ORR_MEM_RESIDUAL_DROPOUT:
        return x * (3 * e + 1); /* input, residual, output, a byte of mask */
    case ORR_MEM_CROSS_ENTROPY:
        return x * e * 3; /* logits twice (statistics, gradient), gradient once */
    case ORR_MEM_ADAM:
        return x * (6 * f + 2 * e); /* weight and two moments in and out, gradient, copy */
    case ORR_MEM_CAST:
        return x * (f + e);
    case ORR_N_MEM_KERNELS:
        break;
    }
    return 0;
}

double orr_case_bytes(const OrrCase *c) {
    double e = orr_dtype_bytes(c->dtype), m = (double)c->m, n = (double)c->n, k = (double)c->k;
    switch (c->kind) {
    case ORR_CASE_GEMM:
        return e * (m * k + k * n + m * n);
    case ORR_CASE_BATCHED_GEMM:
    case ORR_CASE_GROUPED_GEMM:
        return e * (double)c->batch * (m * k + k * n + m * n);
    case ORR_CASE_ATTENTION:
    case ORR_CASE_UNFUSED_ATTENTION:
        return e * (double)c->batch * (double)c->sequence * (double)c->head_dim *
               (double)(c->heads + c->kv_heads) * (c->pass == ORR_PASS_FORWARD ? 2 : 4);
    case ORR_CASE_KERNEL:
        return kernel_bytes(c);
    case ORR_CASE_COPY:
        return (double)c->bytes * (c->op == ORR_COPY_D2D ? 2 : 1); /* read and write in HBM */
    case ORR_CASE_COLLECTIVE:
        return (double)c->bytes;
    case ORR_CASE_LAUNCH:
    case ORR_N_CASE_KINDS:
        break;
    }
    return 0;
}

double orr_case_bus_factor(OrrCollective op, int64_t n_gpus) {
    double n = (double)n_gpus;
    if (op == ORR_ALL_REDUCE)
        return 2 * (n - 1) / n;
    if (op == ORR_ALL_GATHER || op == ORR_REDUCE_SCATTER || op == ORR_ALL_TO_ALL)
        return (n - 1) / n;
    return 1;
}
