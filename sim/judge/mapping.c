#include "sim/judge/mapping.h"

#include <string.h>

void orr_judge_case_clear(OrrJudgeCase *c) {
    g_free(c->cluster_ref);
    orr_model_free(c->model);
    orr_job_free(c->job);
    *c = (OrrJudgeCase){0};
}

static void use(OrrJudgeCase *c, OrrJudgeRule rule) {
    c->rules |= 1u << rule;
}

#define MAX_MICRO_BATCHES 16384 /* ours: published steps have a few hundred */
#define COMMON_NODE                                                                                \
    8 /* GPUs of every node of ours but the trays of an NVL72 (topologies/nodes)                   \
       */

/* Whether @text holds @words, in any case. */
static bool has(const char *text, const char *words) {
    g_autofree char *lower = g_ascii_strdown(text, -1);
    return strstr(lower, words) != NULL;
}

static bool is_zero_bubble(const char *schedule) {
    return has(schedule, "zb") || has(schedule, "zero bubble") || has(schedule, "zero-bubble") ||
           has(schedule, "dualpipe") || has(schedule, "v-half") || has(schedule, "v-min");
}

/* What no row can have that the simulator does not take yet. */
static const char *not_taken(const OrrPublishedRun *row) {
    if (row->experts > 1 || row->ep > 1 || has(row->model, "moe"))
        return "mixture of experts";
    if (row->cp > 1)
        return "context parallelism";
    if (is_zero_bubble(row->schedule))
        return "zero-bubble schedule";
    if (has(row->precision, "fp8"))
        return "FP8";
    if (has(row->precision, "fp4"))
        return "FP4";
    if (has(row->note, "cpu offload true"))
        return "offload to the host";
    return NULL;
}

/* Shapes that no published run has: a slip in the table, not a job. */
static const char *beyond(const OrrPublishedRun *row) {
    const struct {
        uint64_t value, most;
        const char *why;
    } bounds[] = {{row->layers, 10000, "layers above 10,000"},
                  {row->hidden, 1u << 20, "hidden above 1,048,576"},
                  {row->ffn, 1u << 23, "ffn_hidden above 8,388,608"},
                  {row->vocab, 1u << 26, "vocab above 67,108,864"},
                  {row->sequence_tokens, 1u << 24, "seq_len above 16,777,216"},
                  {row->micro_sequences, 1u << 16, "micro_batch above 65,536"}};
    for (size_t i = 0; i < G_N_ELEMENTS(bounds); i++)
        if (bounds[i].value > bounds[i].most)
            return bounds[i].why;
    return NULL;
}

static const char *lacks(const OrrPublishedRun *row) {
    const struct {
        uint32_t value;
        const char *why;
    } needs[] = {{row->gpus, "gpus not stated"},
                 {row->layers, "layers not stated"},
                 {row->hidden, "hidden not stated"},
                 {row->heads, "heads not stated"},
                 {row->sequence_tokens, "seq_len not stated"},
                 {row->global_sequences, "global_batch_seqs not stated"},
                 {row->micro_sequences, "micro_batch not stated"}};
    for (size_t i = 0; i < G_N_ELEMENTS(needs); i++)
        if (needs[i].value == 0)
            return needs[i].why;
    if (!row->is_trial && row->step_time_ns <= 0 && row->tokens_per_gpu_per_s <= 0 &&
        row->tflops_per_gpu <= 0)
        return "no measured time or rate";
    return beyond(row);
}

const char *orr_judge_begin(const OrrPublishedRun *row, bool all_rows, OrrJudgeCase *c) {
    bool is_default = false, is_nearest = false;
    c->gpu = orr_judge_gpu(c->names, row->gpu);
    c->profile = orr_judge_framework(c->names, row, c->gpu, &is_nearest);
    if (!row->is_recommended && !all_rows)
        return "not recommended by its table";
    if (row->flaw)
        return row->flaw;
    const char *why = not_taken(row);
    why = why ? why : lacks(row);
    if (why)
        return why;
    if (!c->gpu)
        return "GPU without a file";
    if (!c->profile)
        return "framework without a profile";
    const char *cluster = orr_judge_cluster(c->names, c->gpu, row->interconnect, &is_default);
    if (!cluster)
        return "GPU without a cluster file";
    uint32_t per_node = row->nodes > 1 && row->gpus % row->nodes == 0 ? row->gpus / row->nodes : 0;
    if (per_node > 0 && per_node < COMMON_NODE && !g_str_has_prefix(c->gpu, "g")) {
        use(c, ORR_RULE_NODE);
        c->cluster_ref = g_strdup_printf("fat_tree:%u node:%u gpu:%s", row->gpus, per_node, c->gpu);
    } else
        c->cluster_ref = g_strdup_printf("%s:%u", cluster, row->gpus);
    if (is_default)
        use(c, ORR_RULE_CLUSTER);
    if (is_nearest)
        use(c, ORR_RULE_FRAMEWORK);
    return NULL;
}

static void map_model(const OrrPublishedRun *row, OrrJudgeCase *c) {
    bool is_default;
    const OrrFamilyName *f = orr_judge_family(c->names, row->model, row->framework, &is_default);
    OrrModel *m = g_new0(OrrModel, 1);
    if (is_default)
        use(c, ORR_RULE_FAMILY);
    if (row->kv_heads == 0)
        use(c, ORR_RULE_KV_HEADS);
    if (row->ffn == 0)
        use(c, ORR_RULE_FFN);
    if (row->vocab == 0)
        use(c, ORR_RULE_VOCAB);
    bool says_tied = has(row->note, "tied embeddings true");
    bool says_untied = has(row->note, "tied embeddings false");
    if (!says_tied && !says_untied)
        use(c, ORR_RULE_TIED);
    *m = (OrrModel){.name = g_strdup(row->model),
                    .family = g_strdup(f->words),
                    .source = g_strdup(row->source),
                    .layers = row->layers,
                    .hidden = row->hidden,
                    .heads = row->heads,
                    .kv_heads = row->kv_heads ? row->kv_heads : row->heads,
                    .head_dim = row->hidden / row->heads,
                    .ffn = row->ffn ? row->ffn : 4 * row->hidden,
                    .vocab = row->vocab ? row->vocab : f->vocab,
                    .max_positions = row->sequence_tokens,
                    .norm = f->norm,
                    .activation = f->activation,
                    .is_gated = f->is_gated,
                    .position = f->position,
                    .rotary_frac = f->rotary_frac,
                    .is_tied = says_tied || (f->is_tied && !says_untied),
                    .qkv_bias = f->has_qkv_bias,
                    .out_bias = f->has_biases,
                    .mlp_bias = f->has_biases,
                    .norm_bias = f->norm == ORR_LAYER_NORM,
                    .has_embedding_norm = f->has_embedding_norm};
    c->model = m;
}

static uint32_t zero_stage(const OrrPublishedRun *row, const OrrFramework *f, OrrJudgeCase *c) {
    if (g_ascii_isdigit(row->zero[0]))
        return (uint32_t)(row->zero[0] - '0');
    if (strstr(row->zero, "ZeRO-2") || strstr(row->zero, "GRAD_OP"))
        return 2;
    if (strstr(row->zero, "FSDP") || strstr(row->zero, "FULL"))
        return 3;
    use(c, ORR_RULE_ZERO);
    return f->defaults.zero_stage;
}

/* Ranks that share a shard, where the note tells of groups: InternEvo's "zero1 group 8", HSDP. */
static uint32_t shard_group(const OrrPublishedRun *row, const OrrLayout *l, uint32_t node,
                            OrrJudgeCase *c) {
    static const char words[] = "zero1 group ";
    const char *group = strstr(row->note, words);
    guint64 n = group ? g_ascii_strtoull(group + strlen(words), NULL, 10) : 0;
    if (!group && strstr(row->note, "HSDP")) {
        use(c, ORR_RULE_SHARDS);
        n = node;
    }
    return l->zero_stage > 0 && n > 1 && n < l->dp && l->dp % n == 0 ? (uint32_t)n : 0;
}

/* Chunks of an interleaved schedule whose number is not stated. */
static uint32_t chunks(const OrrPublishedRun *row, const OrrLayout *l, OrrJudgeCase *c) {
    if (row->vpp > 0 || l->pp == 1)
        return l->pp == 1 ? 1 : row->vpp;
    if (!has(row->schedule, "interleaved"))
        return 1;
    use(c, ORR_RULE_VPP);
    if (l->ends == ORR_ENDS_OWN_CHUNK && (row->layers + 2) % l->pp == 0)
        return (row->layers + 2) / l->pp;
    return row->layers % (2 * l->pp) == 0 ? 2 : 1;
}

static bool divides(const OrrLayout *l, uint32_t layers) {
    uint32_t n = l->pp * l->vpp;
    switch (l->ends) {
    case ORR_ENDS_WITH_LAYERS:
        return layers % n == 0;
    case ORR_ENDS_OWN_CHUNK:
        return n >= 3 && layers % (n - 2) == 0;
    case ORR_ENDS_ONE_LAYER_LESS:
        return n == 1 || (layers + 2) % n == 0;
    case ORR_ENDS_AS_LAYERS:
    case ORR_ENDS_BY_COST:
        return true;
    }
    return false;
}

static void split_stages(const OrrPublishedRun *row, OrrLayout *l, OrrJudgeCase *c) {
    if (divides(l, row->layers))
        return;
    uint32_t n = l->pp * l->vpp;
    use(c, ORR_RULE_SPLIT);
    l->n_stage_layers = n;
    l->stage_layers = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        l->stage_layers[i] = row->layers / n + (i < row->layers % n);
}

static const char *map_layout(const OrrPublishedRun *row, const OrrFramework *f, uint32_t node,
                              OrrJudgeCase *c) {
    OrrLayout *l = &c->job->layout;
    static const OrrRankDim order[ORR_MAX_DIMS] = {ORR_DIM_TP, ORR_DIM_CP, ORR_DIM_EP, ORR_DIM_DP,
                                                   ORR_DIM_PP};
    l->tp = MAX(row->tp, 1), l->pp = MAX(row->pp, 1), l->cp = l->ep = 1;
    if (row->gpus % (l->tp * l->pp) != 0)
        return "gpus do not divide by tp x pp";
    l->dp = row->gpus / (l->tp * l->pp);
    if (row->dp != l->dp)
        use(c, ORR_RULE_DP);
    memcpy(l->rank_order, order, sizeof order);
    l->zero_stage = zero_stage(row, f, c);
    l->reshard_after_forward = f->defaults.reshard_after_forward || f->defaults.zero_stage < 3;
    l->hsdp_shard = shard_group(row, l, node, c);
    l->sequence_parallel = l->tp > 1 && (row->sp < 0 ? f->defaults.sequence_parallel : row->sp);
    if (row->sp < 0 && l->tp > 1)
        use(c, ORR_RULE_SP);
    l->ends = f->defaults.ends;
    if (has(row->note, "first and last stage hold one layer fewer"))
        l->ends = ORR_ENDS_ONE_LAYER_LESS;
    l->vpp = chunks(row, l, c);
    split_stages(row, l, c);
    return NULL;
}

static OrrDtype compute_dtype(const OrrPublishedRun *row, OrrJudgeCase *c) {
    bool is_bf16 = has(row->precision, "bf16"), is_fp16 = has(row->precision, "fp16");
    if (is_fp16 && !is_bf16)
        return ORR_FP16;
    if (!is_bf16 && has(row->precision, "tf32"))
        return ORR_TF32;
    if (!is_bf16 && has(row->precision, "fp32"))
        return ORR_FP32;
    if (is_fp16 || !is_bf16)
        use(c, ORR_RULE_PRECISION);
    return ORR_BF16;
}

static void map_recompute(const OrrPublishedRun *row, OrrJudgeCase *c) {
    OrrRecomputeSpec *r = &c->job->recompute;
    bool is_none = g_str_has_prefix(row->recompute, "none");
    if (!row->recompute[0])
        use(c, ORR_RULE_RECOMPUTE);
    r->policy = is_none                            ? ORR_RECOMPUTE_NONE
                : has(row->recompute, "per-op")    ? ORR_RECOMPUTE_PER_OP
                : has(row->recompute, "selective") ? ORR_RECOMPUTE_SELECTIVE
                : has(row->recompute, "full") || has(row->recompute, "yes") ? ORR_RECOMPUTE_FULL
                                                                            : ORR_RECOMPUTE_NONE;
    r->method = ORR_RECOMPUTE_UNIFORM;
    r->layers = 1;
}

static void map_schedule(const OrrPublishedRun *row, OrrJudgeCase *c) {
    bool is_gpipe = has(row->schedule, "gpipe") || has(row->schedule, "afab");
    const char *name = c->job->layout.vpp > 1 ? "interleaved" : is_gpipe ? "gpipe" : "1f1b";
    if (c->job->layout.pp > 1 && !row->schedule[0])
        use(c, ORR_RULE_SCHEDULE);
    c->job->schedule_name = g_strdup(name);
}

static void map_measure(const OrrPublishedRun *row, OrrJudgeCase *c) {
    c->measure = row->step_time_ns > 0           ? ORR_MEASURED_STEP
                 : row->tokens_per_gpu_per_s > 0 ? ORR_MEASURED_TOKENS
                                                 : ORR_MEASURED_TFLOPS;
    if (c->measure == ORR_MEASURED_TOKENS)
        use(c, ORR_RULE_TOKENS);
    if (c->measure == ORR_MEASURED_TFLOPS)
        use(c, ORR_RULE_TFLOPS);
    c->is_hardware_flops = has(row->note, "hardware");
    c->is_allocated = has(row->note, "max allocated");
}

const char *orr_judge_complete(const OrrPublishedRun *row, const OrrFramework *framework,
                               uint32_t gpus_per_node, OrrJudgeCase *c) {
    if (row->hidden % row->heads != 0)
        return "hidden does not divide by heads";
    map_model(row, c);
    c->job = g_new0(OrrJob, 1);
    c->job->name = g_strdup(row->id);
    c->job->source = g_strdup(row->source);
    c->job->cluster_ref = g_strdup(c->cluster_ref);
    c->job->framework_ref = g_strdup(c->profile);
    c->job->n_gpus = row->gpus;
    c->job->batch = (OrrBatch){.global_sequences = row->global_sequences,
                               .micro_sequences = row->micro_sequences,
                               .sequence_tokens = row->sequence_tokens};
    const char *why = map_layout(row, framework, gpus_per_node, c);
    if (why)
        return why;
    OrrBatch *batch = &c->job->batch;
    uint64_t each = (uint64_t)row->micro_sequences * c->job->layout.dp;
    if (row->micro_batches > 0)
        batch->global_sequences = (uint32_t)MIN(each * row->micro_batches, UINT32_MAX);
    if (batch->global_sequences % each != 0)
        return "global batch does not divide by micro_batch x dp";
    if (batch->global_sequences / each > MAX_MICRO_BATCHES)
        return "more micro-batches a step than 16,384";
    OrrPrecision *p = &c->job->precision;
    orr_precision_default(&framework->defaults, compute_dtype(row, c), p);
    if (has(row->precision, "pure")) /* FSDP's mixed precision with 16-bit reductions */
        p->reduce = p->compute;
    map_recompute(row, c);
    map_schedule(row, c);
    map_measure(row, c);
    return NULL;
}

double orr_judge_measured_ns(const OrrPublishedRun *row, const OrrJudgeCase *c, double sim_ns,
                             double sim_tflops) {
    double tokens = (double)row->global_sequences * row->sequence_tokens;
    switch (c->measure) {
    case ORR_MEASURED_STEP:
        return row->step_time_ns;
    case ORR_MEASURED_TOKENS:
        return tokens / ((double)row->gpus * row->tokens_per_gpu_per_s) * 1e9;
    case ORR_MEASURED_TFLOPS:
        return sim_ns * sim_tflops / row->tflops_per_gpu;
    }
    return 0;
}
