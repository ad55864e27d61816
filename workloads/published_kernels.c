/* Published tables of collectives (time by size) and of kernels (time by shape). */
#include "workloads/published_priv.h"

#include <string.h>

#define MAX_TIME_US 1e15 /* ours: thirty years */

static OrrCollective kind_of(const char *text) {
    static const struct {
        const char *text;
        OrrCollective kind;
    } names[] = {
        {"all_reduce", ORR_ALL_REDUCE},
        {"all-reduce", ORR_ALL_REDUCE},
        {"all_gather", ORR_ALL_GATHER},
        {"all-gather", ORR_ALL_GATHER},
        {"reduce_scatter", ORR_REDUCE_SCATTER},
        {"reduce-scatter", ORR_REDUCE_SCATTER},
        {"alltoall", ORR_ALL_TO_ALL},
        {"all_to_all", ORR_ALL_TO_ALL},
        {"broadcast", ORR_BROADCAST},
        {"reduce", ORR_REDUCE},
        {"sendrecv", ORR_SEND_RECV},
        {"send_recv", ORR_SEND_RECV},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(text, names[i].text) == 0)
            return names[i].kind;
    return ORR_N_COLLECTIVES;
}

static OrrAlgo algo_of(const char *text) {
    static const struct {
        const char *text;
        OrrAlgo algo;
    } names[] = {{"Ring", ORR_ALGO_RING},
                 {"Tree", ORR_ALGO_TREE},
                 {"NVLS", ORR_ALGO_NVLS},
                 {"NVLSTree", ORR_ALGO_NVLS_TREE}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(text, names[i].text) == 0)
            return names[i].algo;
    return ORR_N_ALGOS;
}

/* nccl-tests' names and ours; its default where none is told. */
static OrrDtype dtype_of(const char *text) {
    static const struct {
        const char *prefix;
        OrrDtype dtype;
    } names[] = {{"bf16", ORR_BF16},  {"bfloat16", ORR_BF16}, {"fp16", ORR_FP16},
                 {"half", ORR_FP16},  {"float16", ORR_FP16},  {"int8", ORR_INT8},
                 {"uint8", ORR_INT8}, {"fp8", ORR_FP8},       {"nvfp4", ORR_FP4},
                 {"tf32", ORR_TF32},  {"fp32", ORR_FP32},     {"float", ORR_FP32}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_str_has_prefix(text, names[i].prefix))
            return names[i].dtype;
    return *text ? ORR_N_DTYPES : ORR_FP32;
}

/* "2.27.3" to 22703; 0 if it is no version. */
static uint32_t version_of(const char *text) {
    g_auto(GStrv) parts = g_strsplit(text, ".", 3);
    uint32_t version = 0;
    bool is_over = false;
    for (int i = 0; i < 3; i++) {
        is_over = is_over || !parts[i];
        guint64 part = is_over ? 0 : g_ascii_strtoull(parts[i], NULL, 10);
        if (part > 99)
            return 0;
        version = version * 100 + (uint32_t)part;
    }
    return version;
}

static const char *cell(const OrrCsv *csv, guint row, int column) {
    return column < 0 ? "" : orr_csv_cell(csv, row, column);
}

static int either(const OrrCsv *csv, const char *one, const char *other) {
    int column = orr_csv_column(csv, one);
    return column >= 0 ? column : orr_csv_column(csv, other);
}

/* Who issued the calls: one node under nccl-tests is one process for all GPUs, as its README has it
 * (-g N; vTrain's tables were made so); PyTorch's bench is named. Tables that name no source are of
 * a process a GPU. */
static OrrTimed timed_of(const char *source, double n_nodes) {
    if (strstr(source, "all_reduce_bench"))
        return ORR_TIMED_TORCH;
    bool is_test = strstr(source, "nccl-tests") || strstr(source, "vTrain");
    return is_test && n_nodes <= 1 ? ORR_TIMED_ONE_PROCESS : ORR_TIMED_RANKS;
}

void orr_published__calls(const OrrCsv *csv, uint32_t file, OrrPublished *into) {
    int kind = either(csv, "collective", "op"), bytes = either(csv, "size_bytes", "bytes"),
        id = orr_csv_column(csv, "id"), system = orr_csv_column(csv, "system"),
        gpu = orr_csv_column(csv, "gpu"), link = orr_csv_column(csv, "interconnect"),
        version = either(csv, "nccl_version", "table"), algo = orr_csv_column(csv, "algo"),
        dtype = orr_csv_column(csv, "dtype"), gpus = orr_csv_column(csv, "gpus"),
        source = orr_csv_column(csv, "source"), nodes = orr_csv_column(csv, "nodes"),
        time = orr_csv_column(csv, "time_us");
    bool is_one_node = nodes < 0; /* kernels/nccl_one_node.csv */
    for (guint r = 0; r < orr_csv_n_rows(csv); r++) {
        g_autofree char *flaw = NULL;
        double n = orr_published__number(csv, r, gpus, UINT32_MAX, &flaw);
        double n_nodes = orr_published__number(csv, r, nodes, UINT32_MAX, &flaw);
        double size = orr_published__number(csv, r, bytes, 0x1p50, &flaw);
        double us = orr_published__number(csv, r, time, 1e15, &flaw);
        const char *what = cell(csv, r, kind);
        OrrPublishedCall call = {
            .file = file,
            .line = orr_csv_line(csv, r),
            .id = g_strdup(cell(csv, r, id)),
            .gpu = g_strdup(cell(csv, r, gpu)),
            .system = g_strdup(cell(csv, r, system >= 0 ? system : gpu)),
            .interconnect = g_strdup(cell(csv, r, link)),
            .what = g_strdup(flaw ? flaw : what),
            .version = version_of(cell(csv, r, version)),
            .kind = flaw ? ORR_N_COLLECTIVES : kind_of(what),
            .algo = algo_of(cell(csv, r, algo)),
            .dtype = dtype_of(cell(csv, r, dtype)),
            .n_ranks = (uint32_t)n,
            .n_nodes = is_one_node ? 1 : (uint32_t)n_nodes,
            .bytes = (int64_t)size,
            .time_ns = us * 1e3,
            .timed = timed_of(cell(csv, r, source), is_one_node ? 1 : n_nodes),
        };
        g_array_append_val(into->calls, call);
    }
}

/* "a100_sxm80" of "gemm_a100_sxm80.csv": tables of one GPU have it in their name. */
static char *gpu_of_file(const char *file) {
    static const char *const prefixes[] = {"gemm_", "attention_forward_"};
    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++)
        if (g_str_has_prefix(file, prefixes[i])) {
            const char *rest = file + strlen(prefixes[i]);
            const char *dot = strchr(rest, '.');
            return g_strndup(rest, dot ? (gsize)(dot - rest) : strlen(rest));
        }
    return g_strdup("");
}

typedef struct {
    int m, n, k, time, tflops, groups, op, direction, mask, causal, batch, seq, heads, kv, dim,
        dtype, id, gpu;
} KernelColumns;

static KernelColumns kernel_columns(const OrrCsv *csv) {
    return (KernelColumns){.m = either(csv, "m", "M"),
                           .n = either(csv, "n", "N"),
                           .k = either(csv, "k", "K"),
                           .time = orr_csv_column(csv, "time_us"),
                           .tflops = orr_csv_column(csv, "tflops"),
                           .groups = orr_csv_column(csv, "groups"),
                           .op = orr_csv_column(csv, "op"),
                           .direction = orr_csv_column(csv, "direction"),
                           .mask = orr_csv_column(csv, "mask"),
                           .causal = orr_csv_column(csv, "causal"),
                           .batch = orr_csv_column(csv, "batch"),
                           .seq = orr_csv_column(csv, "seq_len"),
                           .heads = orr_csv_column(csv, "heads"),
                           .kv = orr_csv_column(csv, "kv_heads"),
                           .dim = orr_csv_column(csv, "head_dim"),
                           .dtype = orr_csv_column(csv, "dtype"),
                           .id = orr_csv_column(csv, "id"),
                           .gpu = orr_csv_column(csv, "gpu")};
}

/* Papers on attention state head size, length and rate, of 16,384 tokens and a width of 2,048 (Dao
 * 2023, section 4; Shah et al. 2024, section 4.1). */
static void complete_attention(OrrPublishedKernel *k) {
    if (k->heads == 0 && k->head_dim > 0)
        k->heads = MAX(1, 2048 / k->head_dim);
    if (k->kv_heads == 0)
        k->kv_heads = k->heads;
    if (k->batch == 0 && k->sequence_tokens > 0)
        k->batch = MAX(1, 16384 / k->sequence_tokens);
}

static double flops_of(const OrrPublishedKernel *k) {
    if (k->kind == ORR_K_GEMM)
        return 2.0 * (double)k->m * (double)k->n * (double)k->k;
    double pairs = (double)k->sequence_tokens * (double)k->sequence_tokens;
    return 4.0 * (double)k->batch * k->heads * k->head_dim * pairs * (k->is_causal ? 0.5 : 1.0);
}

static void judge_kernel(OrrPublishedKernel *k, const char *op, double groups, double tflops) {
    bool is_attention = k->kind == ORR_K_ATTENTION;
    if (k->flaw)
        return;
    const char *why = NULL;
    if (groups > 1)
        why = "grouped products";
    else if (!is_attention && (k->m == 0 || k->n == 0 || k->k == 0))
        why = "no shape of a product";
    else if (is_attention && (k->sequence_tokens == 0 || k->head_dim == 0))
        why = "no shape of attention";
    else if (k->dtype == ORR_N_DTYPES)
        why = "dtype that is not known";
    else if (strstr(op, "attention 2"))
        why = "an older attention library than the GPU's own";
    else if (k->time_ns <= 0 && tflops > 0)
        k->time_ns = flops_of(k) / tflops * 1e-3;
    if (!why && k->time_ns <= 0)
        why = "no time and no rate";
    if (!why && !(k->time_ns <= MAX_TIME_US * 1e3)) /* of a shape and a rate beyond reason */
        why = "no time that a kernel could take";
    k->flaw = g_strdup(why);
}

typedef struct {
    const OrrCsv *csv;
    KernelColumns column;
    uint32_t file;
    char *gpu; /* of a table of one GPU */
} KernelTable;

static void read_shape(const KernelTable *t, guint r, OrrPublishedKernel *k) {
    const KernelColumns *c = &t->column;
    const struct {
        int column;
        int64_t *into;
    } large[] = {{c->m, &k->m},
                 {c->n, &k->n},
                 {c->k, &k->k},
                 {c->batch, &k->batch},
                 {c->seq, &k->sequence_tokens}};
    const struct {
        int column;
        uint32_t *into;
    } small[] = {{c->heads, &k->heads}, {c->kv, &k->kv_heads}, {c->dim, &k->head_dim}};
    for (size_t i = 0; i < G_N_ELEMENTS(large); i++)
        *large[i].into = (int64_t)orr_published__number(t->csv, r, large[i].column, 1e15, &k->flaw);
    for (size_t i = 0; i < G_N_ELEMENTS(small); i++)
        *small[i].into =
            (uint32_t)orr_published__number(t->csv, r, small[i].column, UINT32_MAX, &k->flaw);
}

static void read_kernel(const KernelTable *t, guint r, OrrPublished *into) {
    const KernelColumns *c = &t->column;
    OrrPublishedKernel k = {.file = t->file, .line = orr_csv_line(t->csv, r)};
    const char *op = cell(t->csv, r, c->op), *dtype = cell(t->csv, r, c->dtype);
    read_shape(t, r, &k);
    double tflops = orr_published__number(t->csv, r, c->tflops, 1e9, &k.flaw);
    double groups = orr_published__number(t->csv, r, c->groups, 1e9, &k.flaw);
    k.time_ns = orr_published__number(t->csv, r, c->time, MAX_TIME_US, &k.flaw) * 1e3;
    k.id = g_strdup(cell(t->csv, r, c->id));
    k.gpu = g_strdup(c->gpu >= 0 ? cell(t->csv, r, c->gpu) : t->gpu);
    k.kind = c->mask >= 0 || strstr(op, "attention") ? ORR_K_ATTENTION : ORR_K_GEMM;
    k.dtype = dtype_of(dtype);
    k.is_block_scaled = strstr(dtype, "block") || strstr(dtype, "fine-grained");
    k.is_causal = strcmp(cell(t->csv, r, c->mask), "causal") == 0 ||
                  strcmp(cell(t->csv, r, c->causal), "1") == 0;
    k.is_alone = c->op >= 0; /* tables of operations have a shape, papers name a kernel */
    if (strcmp(cell(t->csv, r, c->direction), "backward") == 0 && !k.flaw)
        k.flaw = g_strdup("backward");
    if (k.kind == ORR_K_ATTENTION)
        complete_attention(&k);
    judge_kernel(&k, op, groups, tflops);
    g_array_append_val(into->kernels, k);
}

void orr_published__kernels(const OrrCsv *csv, uint32_t file, OrrPublished *into) {
    KernelTable t = {csv, kernel_columns(csv), file, gpu_of_file(into->files[file])};
    for (guint r = 0; r < orr_csv_n_rows(csv); r++)
        read_kernel(&t, r, into);
    g_free(t.gpu);
}
